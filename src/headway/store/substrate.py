"""What other deployments may read of this one: pause states, objectives and their blockers.

Reading only: every verb is a SELECT over columns named here, newest first, bounded by the filter
and by the bytes it may bring.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Select,
    Table,
    case,
    cast,
    exists,
    false,
    func,
    select,
)

from headway.domain.azolla.artifacts import (
    Artifact,
    BlockerRef,
    Objective,
    ObjectiveType,
    PauseState,
)
from headway.domain.azolla.filters import (
    BlockerRefFilter,
    Filter,
    ObjectiveFilter,
    PauseStateFilter,
)
from headway.domain.azolla.ids import LETTER, PAGE
from headway.domain.dead_letter import DeadLetterStatus
from headway.store.artifact_rows import from_row
from headway.store.tables import blocker_ref, dead_letter, objective, pause_state
from headway.store.transaction import Transaction, among, word

MOST_BYTES = 16 * 1024 * 1024
ROWS_AT_ONCE = 20


class TooMuch(Exception):
    """What fits is more than may be read at once; a narrower filter, or a lower limit, helps."""


def read(tx: Transaction, wanted: Filter, most_bytes: int = MOST_BYTES) -> Sequence[Artifact]:
    """The artifacts that fit, newest first; :class:`TooMuch` if their text has more bytes."""
    match wanted:
        case PauseStateFilter():
            return pause_states(tx, wanted, most_bytes)
        case ObjectiveFilter():
            return objectives(tx, wanted, most_bytes)
        case BlockerRefFilter():
            return blockers(tx, wanted, most_bytes)
        case _:
            raise TypeError(f"no artifacts for {type(wanted).__name__}")


def pause_states(
    tx: Transaction, wanted: PauseStateFilter, most_bytes: int = MOST_BYTES
) -> list[PauseState]:
    """Why work rests."""
    columns = pause_state.c
    rules = [
        *_any_of(tx, columns.objective_id, wanted.objective_id),
        *_any_of(tx, columns.reason, wanted.reason),
    ]
    if wanted.created_after is not None:
        rules.append(columns.created_at > wanted.created_after)
    if wanted.unsettled:
        rules += [columns.pause_id.not_like(f"{PAGE}-%"), ~_resolved(), ~_touched_since()]
    newest = (columns.created_at.desc(), columns.pause_id.desc())
    rows = _rows(tx, _chosen(pause_state, rules, newest, wanted.limit), most_bytes)
    return [from_row(PauseState, row) for row in rows]


def _resolved() -> ColumnElement[bool]:
    """Whether a pause state is about a dead letter that waits no longer; its id has the number."""
    pause_id = pause_state.c.pause_id
    number = cast(func.substr(pause_id, len(LETTER) + 2), BigInteger)
    awaited = exists().where(
        dead_letter.c.id == number,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )
    return case((pause_id.like(f"{LETTER}-%"), ~awaited), else_=false())


def _touched_since() -> ColumnElement[bool]:
    """Whether a pause state is about a ticket somebody has changed after it was written."""
    return exists().where(
        objective.c.objective_id == pause_state.c.objective_id,
        objective.c.objective_type == word(ObjectiveType.TICKET),
        objective.c.updated_at > pause_state.c.created_at,
    )


def objectives(
    tx: Transaction, wanted: ObjectiveFilter, most_bytes: int = MOST_BYTES
) -> list[Objective]:
    """What is to be reached, each with its blockers."""
    columns = objective.c
    rules = [
        *_any_of(tx, columns.objective_id, wanted.objective_id),
        *_any_of(tx, columns.status, wanted.status),
        *_any_of(tx, columns.objective_type, wanted.objective_type),
    ]
    if wanted.min_urgency is not None:
        rules.append(columns.urgency >= wanted.min_urgency)
    if wanted.min_importance is not None:
        rules.append(columns.importance >= wanted.min_importance)
    if wanted.updated_after is not None:
        rules.append(columns.updated_at > wanted.updated_after)
    newest = (columns.updated_at.desc(), columns.objective_id.desc())
    rows = _rows(tx, _chosen(objective, rules, newest, wanted.limit), most_bytes)
    named = {row["objective_id"]: json.loads(row["blocked_on"]) for row in rows}
    known = _blockers_by_id(tx, {one for ids in named.values() for one in ids}, most_bytes)
    return [
        from_row(
            Objective,
            row,
            blocked_on=[known[one] for one in named[row["objective_id"]] if one in known],
        )
        for row in rows
    ]


def blockers(
    tx: Transaction, wanted: BlockerRefFilter, most_bytes: int = MOST_BYTES
) -> list[BlockerRef]:
    """What objectives wait for."""
    columns = blocker_ref.c
    rules = [
        *_any_of(tx, columns.blocker_id, wanted.blocker_id),
        *_any_of(tx, columns.kind, wanted.kind),
    ]
    if wanted.resolved is not None:
        rules.append(columns.resolved.is_(wanted.resolved))
    rows = _rows(tx, _chosen(blocker_ref, rules, (columns.blocker_id,), wanted.limit), most_bytes)
    return [from_row(BlockerRef, row) for row in rows]


def _blockers_by_id(tx: Transaction, ids: Iterable[str], most_bytes: int) -> dict[str, BlockerRef]:
    chosen = select(blocker_ref).where(among(tx, blocker_ref.c.blocker_id, ids))
    found = (from_row(BlockerRef, row) for row in _rows(tx, chosen, most_bytes))
    return {one.blocker_id: one for one in found}


def _any_of(
    tx: Transaction, column: Column[Any], values: Iterable[str] | None
) -> list[ColumnElement[bool]]:
    return [] if values is None else [among(tx, column, map(str, values))]


def _chosen(
    table: Table, rules: Iterable[ColumnElement[bool]], order: Iterable[Any], limit: int
) -> Select[Any]:
    return select(table).where(*rules).order_by(*order).limit(limit)


def _rows(tx: Transaction, statement: Select[Any], most_bytes: int) -> Sequence[Mapping[str, Any]]:
    """Some rows at a time, so that what is too much is never in memory as a whole."""
    rows, size = [], 0
    options = {"yield_per": ROWS_AT_ONCE}
    with tx.connection.execute(statement, execution_options=options) as found:
        for row in found.mappings():
            size += sum(len(value) for value in row.values() if isinstance(value, str))
            if size > most_bytes:
                raise TooMuch(f"more than {most_bytes} bytes of text")
            rows.append(dict(row))
    return rows
