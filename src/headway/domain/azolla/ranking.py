"""What to do first, over all deployments: the order of the page, decided from what was seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from headway.domain.azolla.artifacts import Objective, ObjectiveStatus, PauseReason
from headway.domain.azolla.context import Answer, Context
from headway.domain.text import printable

# What failed wants somebody sooner than what ran out of time, and both sooner than what is done.
_FAILURE = {
    PauseReason.GATE_FAILED: 0,
    PauseReason.BUDGET_EXHAUSTED: 1,
    PauseReason.RUN_COMPLETE: 3,
}
_BLOCKED, _OPEN = 2, 4
ACTION_LIMIT = 300


@dataclass(frozen=True)
class Matter:
    """Something that waits for the operator, and how it compares with the rest."""

    azolla_id: str
    objective_id: str
    actions: tuple[str, ...]
    urgency: int
    importance: int
    failure: int
    since: datetime

    @property
    def rank(self) -> tuple[object, ...]:
        """Smaller comes first: urgency, importance, failure, age; ids so that no tie is left."""
        return (
            -self.urgency,
            -self.importance,
            self.failure,
            self.since,
            self.azolla_id,
            self.objective_id,
            self.actions,
        )


def ranked(context: Context) -> list[Matter]:
    """Everything that waits, the most urgent first."""
    known = {
        (answer.azolla_id, one.objective_id): one
        for answer in context.answers
        for one in answer.objectives()
    }
    found = [
        matter for answer in context.answers for matter in (*_paused(answer, known), *_open(answer))
    ]
    return sorted(found, key=lambda matter: matter.rank)


def _paused(answer: Answer, known: dict[tuple[str, str], Objective]) -> Iterator[Matter]:
    for pause in answer.pause_states():
        objective = known.get((answer.azolla_id, pause.objective_id))
        yield Matter(
            answer.azolla_id,
            pause.objective_id,
            tuple(_one_line(action) for action in pause.prioritized_actions),
            objective.urgency if objective else 0,
            objective.importance if objective else 0,
            _FAILURE[pause.reason],
            pause.created_at,
        )


def _open(answer: Answer) -> Iterator[Matter]:
    """Objectives that say themselves that something is to be done."""
    for objective in answer.objectives():
        blocked = objective.status is ObjectiveStatus.BLOCKED
        if not blocked and objective.status not in (ObjectiveStatus.NEW, ObjectiveStatus.TODO):
            continue
        yield Matter(
            answer.azolla_id,
            objective.objective_id,
            (_one_line(_next_step(objective)),),
            objective.urgency,
            objective.importance,
            _BLOCKED if blocked else _OPEN,
            objective.updated_at,
        )


def _one_line(text: str) -> str:
    """Other deployments wrote it: nothing in it may move a cursor or begin a line."""
    return " ".join(printable(text, ACTION_LIMIT).split())


def _next_step(objective: Objective) -> str:
    if objective.status is ObjectiveStatus.BLOCKED:
        waits = [one.description for one in objective.blocked_on if not one.resolved]
        why = objective.blocked_reason or "; ".join(waits) or "nobody said why"
        return f"unblock “{objective.title}”: {why}"
    if objective.status is ObjectiveStatus.NEW:
        return f"decide on “{objective.title}”: it is new"
    return f"begin “{objective.title}”"
