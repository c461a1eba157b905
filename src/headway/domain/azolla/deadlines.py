"""When an objective is overdue: nobody has touched it for as long as its urgency allows. Pure.

Urgency 4 means "now": such an objective is the first on every page anyway, and has no deadline.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from headway.domain.azolla.artifacts import (
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
)
from headway.domain.azolla.ids import pause_for_deadline
from headway.domain.azolla.pausing import sentence

ALLOWED: Mapping[int, timedelta] = MappingProxyType(
    {
        0: timedelta(days=30),
        1: timedelta(days=14),
        2: timedelta(days=7),
        3: timedelta(days=1),
    }
)
SHORTEST = min(ALLOWED.values())


def deadline_of(objective: Objective) -> datetime | None:
    """The moment from which on an objective is overdue; None for what has no deadline."""
    open_ticket = (
        objective.objective_type is ObjectiveType.TICKET
        and objective.status is not ObjectiveStatus.DONE
    )
    allowed = ALLOWED.get(objective.urgency) if open_ticket else None
    return None if allowed is None else objective.updated_at.astimezone(UTC) + allowed


def overdue(objectives: Iterable[Objective], now: datetime) -> list[tuple[str, PauseState]]:
    """A pause state for each objective that is overdue, under an id that is the same until somebody
    touches the objective."""
    found = []
    for one in objectives:
        deadline = deadline_of(one)
        if deadline is not None and deadline <= now:
            pause_id = pause_for_deadline(one.objective_id, one.updated_at.astimezone(UTC))
            found.append((pause_id, _pause(one, deadline, now)))
    return found


def _pause(objective: Objective, deadline: datetime, now: datetime) -> PauseState:
    key = objective.objective_id
    actions = (
        f"go on with “{objective.title}” (objective {key}): overdue since "
        f"{deadline.astimezone(UTC):%Y-%m-%d %H:%M} UTC, nobody has touched it",
        f"or say how it stands: headway azolla objective set … {key} --status done",
    )
    return PauseState(
        objective_id=key,
        azolla_id=objective.azolla_id,
        reason=PauseReason.RUN_COMPLETE,
        prioritized_actions=tuple(map(sentence, actions)),
        created_at=now,
    )
