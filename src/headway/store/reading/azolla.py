"""The federation's artifacts as its page shows them: pages, newest first."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Select, Table, exists, false, literal, select, tuple_

from headway.domain.azolla.artifacts import (
    CaptureBuffer,
    CaptureStatus,
    Objective,
    ObjectiveStatus,
    PauseReason,
    PauseState,
)
from headway.domain.azolla.filters import MOST_VALUES, ObjectiveFilter
from headway.store import events, substrate
from headway.store.artifact_rows import from_row
from headway.store.events import KnownEvent
from headway.store.tables import capture_buffer, event, objective, pause_state
from headway.store.transaction import Transaction, word
from headway.store.types import Instant

Place = tuple[datetime, str]
"""Where a page goes on: the moment it is sorted by, and the id, of the last on the page before."""


def event_page(
    tx: Transaction, after: Place | None, limit: int, *, parked: bool = False
) -> list[KnownEvent]:
    """What was asked for, and what has become of it; *parked* ones only, or all."""
    statement = _newest(event, event.c.created_at, event.c.event_id, after, limit)
    if parked:
        statement = statement.where(event.c.processed == false(), event.c.parked_at.is_not(None))
    return events.known(tx, statement)


def capture_page(
    tx: Transaction, after: Place | None, limit: int, status: CaptureStatus | None
) -> list[CaptureBuffer]:
    """Notes of people."""
    columns = capture_buffer.c
    statement = _newest(capture_buffer, columns.created_at, columns.capture_id, after, limit)
    if status is not None:
        statement = statement.where(columns.status == word(status))
    return [from_row(CaptureBuffer, row) for row in _rows(tx, statement)]


def pause_page(
    tx: Transaction, after: Place | None, limit: int, reason: PauseReason | None
) -> list[tuple[PauseState, str]]:
    """Why work rests, each with its own id."""
    columns = pause_state.c
    statement = _newest(pause_state, columns.created_at, columns.pause_id, after, limit)
    if reason is not None:
        statement = statement.where(columns.reason == word(reason))
    return [(from_row(PauseState, row), row["pause_id"]) for row in _rows(tx, statement)]


def objective_page(
    tx: Transaction, after: Place | None, limit: int, status: ObjectiveStatus | None, done: bool
) -> list[Objective]:
    """What is to be reached, with its blockers; of those that are *done*, only if asked for."""
    columns = objective.c
    statement = _newest(objective, columns.updated_at, columns.objective_id, after, limit)
    if status is not None:
        statement = statement.where(columns.status == word(status))
    elif not done:
        statement = statement.where(columns.status != word(ObjectiveStatus.DONE))
    ids = [row["objective_id"] for row in _rows(tx, statement)]
    found: dict[str, Objective] = {}
    for start in range(0, len(ids), MOST_VALUES):
        wanted = ObjectiveFilter(objective_id=tuple(ids[start : start + MOST_VALUES]))
        found |= {one.objective_id: one for one in substrate.objectives(tx, wanted)}
    return [found[key] for key in ids if key in found]


def any_parked(tx: Transaction) -> bool:
    """Whether an event waits for a person."""
    parked = exists().where(event.c.processed == false(), event.c.parked_at.is_not(None))
    return bool(tx.connection.execute(select(parked)).scalar_one())


def _newest(
    table: Table, moment: Column[Any], key: Column[Any], after: Place | None, limit: int
) -> Select[Any]:
    statement = select(table).order_by(moment.desc(), key.desc()).limit(limit)
    if after is None:
        return statement
    return statement.where(tuple_(moment, key) < tuple_(literal(after[0], Instant), after[1]))


def _rows(tx: Transaction, statement: Select[Any]) -> Sequence[dict[str, Any]]:
    return [dict(row) for row in tx.connection.execute(statement).mappings()]
