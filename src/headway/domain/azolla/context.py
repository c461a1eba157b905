"""What a manifest is built from, and the text that carries it: rules first, then one JSON object.

The text is all a builder is given, whether it is headway's own or asks a language model.
"""

import json
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from headway.domain.azolla.artifacts import (
    ArtifactType,
    Objective,
    ObjectiveStatus,
    PauseState,
    ResponseStatus,
)
from headway.errors import DefinitionError

FORMAT_RULES = """\
Build a session manifest: one page that tells an operator who comes back where work stands in all \
deployments, and what to do first.

Rules:
1. Use nothing but the JSON object below. It was frozen when the deployments were asked.
2. Give one to five orientation lines, the most urgent first. Each names its deployment, and what \
to do as an imperative.
3. Rank by urgency, then importance, then failure before mere completion, then age: older first.
4. Say which deployments answered. For each other one say that it did not, and its status.
5. Mention how many captures wait, if any do.
6. Invent nothing: no deployment, objective or action that is not in the object."""

MARK = "=== CONTEXT (JSON) ==="


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Answer(_Value):
    """What one deployment said to one question, and why if it said nothing."""

    azolla_id: str
    artifact_type: ArtifactType
    status: ResponseStatus
    note: str | None = None
    results: tuple[dict[str, Any], ...] = ()

    def pause_states(self) -> list[PauseState]:
        """Its results, if they are pause states."""
        wanted = self.artifact_type is ArtifactType.PAUSE_STATE
        return [PauseState.model_validate(one) for one in self.results] if wanted else []

    def objectives(self) -> list[Objective]:
        """Its results, if they are objectives."""
        wanted = self.artifact_type is ArtifactType.OBJECTIVE
        return [Objective.model_validate(one) for one in self.results] if wanted else []


class Urgency(_Value):
    """How urgent an objective is, and where."""

    azolla_id: str
    objective_id: str
    title: str
    status: ObjectiveStatus
    urgency: int
    importance: int


class Context(_Value):
    """Everything that was seen, at one moment."""

    azolla_id: str
    event_id: str
    asked_at: AwareDatetime
    pending_captures: Annotated[int, Field(ge=0)] = 0
    answers: tuple[Answer, ...] = ()
    local_urgency: tuple[Urgency, ...] = ()
    queried_urgency: tuple[Urgency, ...] = ()

    def answered(self) -> tuple[str, ...]:
        """The deployments that answered, if only some of the questions, in alphabetical order."""
        willing = (one.azolla_id for one in self.answers if one.status is ResponseStatus.OK)
        return tuple(sorted(set(willing)))

    def refusals(self) -> tuple[Answer, ...]:
        """Each answer that is none; of a deployment that gave no other only the first."""
        told: dict[tuple[str, str], Answer] = {}
        answered = self.answered()
        for one in sorted(self.answers, key=lambda one: one.azolla_id):
            if one.status is not ResponseStatus.OK:
                which = one.artifact_type if one.azolla_id in answered else ""
                told.setdefault((one.azolla_id, which), one)
        return tuple(told.values())


def urgency_of(objective: Objective) -> Urgency:
    """What the page needs to know of an objective."""
    return Urgency(
        azolla_id=objective.azolla_id,
        objective_id=objective.objective_id,
        title=objective.title,
        status=objective.status,
        urgency=objective.urgency,
        importance=objective.importance,
    )


def prompt_text(context: Context) -> str:
    """The rules and the *context*, as one text."""
    return f"{FORMAT_RULES}\n\n{MARK}\n{context.model_dump_json(indent=1)}"


def parse_prompt(text: str) -> Context:
    """The context in a text that :func:`prompt_text` made.

    >>> parse_prompt("hello")
    Traceback (most recent call last):
    headway.errors.DefinitionError: full_prompt_text = 'hello': has no line '=== CONTEXT (JSON) \
==='; build it with prompt_text
    """
    _, found, written = text.partition(f"\n{MARK}\n")
    if not found:
        shown = text[:40]
        raise DefinitionError(
            f"full_prompt_text = {shown!r}: has no line {MARK!r}; build it with prompt_text"
        )
    return Context.model_validate(json.loads(written))
