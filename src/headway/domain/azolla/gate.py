"""The gate: whether what a builder made may become the operator's page, and what rests then."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter, ValidationError

from headway.domain.azolla.artifacts import GateResult, OutputBundle, PauseReason

MOST_ACTIONS = 3
ASK_AGAIN = "request the manifest again: headway azolla request-manifest"

_ids: TypeAdapter[list[str]] = TypeAdapter(list[str])


class BuildFailure(StrEnum):
    """Why a bundle holds no page; stands in its metadata."""

    BUDGET = "budget"
    ERROR = "error"


@dataclass(frozen=True)
class Judgement:
    """What the gate thinks of a bundle, and the pause state that follows from it."""

    result: GateResult
    reason: str
    pause: PauseReason
    actions: tuple[str, ...]


def judge(bundle: OutputBundle) -> Judgement:
    """PASS if the bundle names who answered and holds text one can act on."""
    failure = bundle.metadata.get("failure")
    if failure == BuildFailure.BUDGET:
        return Judgement(
            GateResult.FAIL,
            bundle.notes,
            PauseReason.BUDGET_EXHAUSTED,
            (f"give the builder more time or less to do: {bundle.notes}", ASK_AGAIN),
        )
    reason = bundle.notes if failure else _fault(bundle)
    if reason:
        look = f"review output bundle {bundle.output_id}: {reason}"
        return Judgement(GateResult.FAIL, reason, PauseReason.GATE_FAILED, (look, ASK_AGAIN))
    lines = orientation_of(bundle)
    told = f"{len(lines)} orientation lines from {', '.join(answered_by(bundle))}"
    return Judgement(GateResult.PASS, told, PauseReason.RUN_COMPLETE, lines[:MOST_ACTIONS])


def answered_by(bundle: OutputBundle) -> tuple[str, ...]:
    """The deployments the page is about."""
    return _texts(bundle.metadata.get("queried_azolla_ids"))


def orientation_of(bundle: OutputBundle) -> tuple[str, ...]:
    """What to do first, as the builder said it."""
    return _texts(bundle.metadata.get("prioritized_orientation"))


def _fault(bundle: OutputBundle) -> str:
    if not answered_by(bundle):
        return "metadata.queried_azolla_ids is empty: no deployment answered"
    if not bundle.content.strip():
        return "content is empty: there is nothing to act on"
    if not orientation_of(bundle):
        return "metadata.prioritized_orientation is empty: nothing says what to do first"
    return ""


def _texts(value: Any) -> tuple[str, ...]:
    try:
        return tuple(one for one in _ids.validate_python(value) if one.strip())
    except ValidationError:
        return ()
