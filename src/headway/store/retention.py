"""Deleting what is old enough, in bounded batches; live work and open dead letters never are.

What each table's rows become is listed in ``tests/store/test_what_becomes_of_rows.py``.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import EntryStatus
from headway.store.tables import (
    dead_letter,
    declaration,
    execution,
    execution_history,
    manifest,
    manifest_group,
    manifest_state,
    tally,
    work_queue,
)
from headway.store.transaction import Transaction, among, among_found, word
from headway.store.types import BigId, Instant

# An old process that restarts must find that its declaration was replaced, however long ago.
DECLARATIONS_KEPT = 1000

Place = tuple[datetime, int]


@dataclass(frozen=True)
class Page:
    """How many of the executions looked at were deleted, and after which one to go on, if any."""

    deleted: int
    next_place: Place | None = None


def delete_finished(
    tx: Transaction, before: datetime, limit: int, after: Place | None = None
) -> Page:
    """Look at the next *limit* executions that finished before then, and delete all but the kept.

    Kept are, of manifests that are not removed, the newest success and the failures that still
    count towards a dead letter; and what a dead letter waits with. They are passed by, not met
    again by every batch: a million manifests keep a million.
    """
    key = tuple_(execution_history.c.finished_at, execution_history.c.id)
    old = select(execution_history.c.finished_at, execution_history.c.id).where(
        execution_history.c.finished_at < before
    )
    if after is not None:
        moment, number = after
        old = old.where(key > tuple_(literal(moment, Instant), literal(number, BigId)))
    in_order = old.order_by(execution_history.c.finished_at, execution_history.c.id).limit(limit)
    places: list[Place] = [(row.finished_at, row.id) for row in tx.connection.execute(in_order)]
    if not places:
        return Page(0)
    chosen = among(tx, execution_history.c.id, [key for _, key in places])
    statement = delete(execution_history).where(chosen, ~is_kept())
    deleted = tx.connection.execute(statement).rowcount
    return Page(deleted, places[-1] if len(places) == limit else None)


def is_kept() -> ColumnElement[bool]:
    """Whether a finished execution is kept whatever its age."""
    history, newer = execution_history, execution_history.alias("newer")
    succeeded_since = exists().where(
        newer.c.manifest_id == history.c.manifest_id,
        newer.c.id > history.c.id,
        newer.c.state == word(ExecutionState.COMPLETED),
    )
    newest_success = and_(
        history.c.state == word(ExecutionState.COMPLETED), ~succeeded_since.correlate(history)
    )
    counting = and_(
        history.c.state == word(ExecutionState.FAILED),
        history.c.id > manifest_state.c.failures_after,
    )
    of_living = exists().where(
        manifest.c.id == history.c.manifest_id,
        manifest.c.removed_at.is_(None),
        manifest_state.c.manifest_id == manifest.c.id,
        or_(newest_success, counting),
    )
    dead = exists().where(
        dead_letter.c.manifest_id == history.c.manifest_id,
        dead_letter.c.execution_id == history.c.id,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )
    return or_(of_living.correlate(history), dead.correlate(history))


def delete_ended_entries(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete queue entries that ended without being dispatched."""
    ended = work_queue.c.status.in_([word(EntryStatus.CANCELLED), word(EntryStatus.FAILED)])
    return _delete(tx, work_queue, and_(ended, work_queue.c.ended_at < before), limit)


def delete_resolved_dead_letters(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete dead letters a person has dealt with."""
    resolved = dead_letter.c.status != word(DeadLetterStatus.AWAITING_INTERVENTION)
    return _delete(tx, dead_letter, and_(resolved, dead_letter.c.resolved_at < before), limit)


def delete_removed_manifests(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete manifests that were removed and of which nothing is left; state and edges go along."""
    referring = (execution, execution_history, work_queue, dead_letter)
    gone = and_(
        manifest.c.removed_at < before,
        *(~_refers(one, "manifest_id", manifest) for one in referring),
    )
    return _delete_unreferenced(tx, manifest, gone, limit)


def delete_empty_groups(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete groups no code declares by themselves and of which nothing is left."""
    referring = (manifest, execution, work_queue)
    empty = and_(
        manifest_group.c.declared.is_(None),
        manifest_group.c.updated_at < before,
        *(~_refers(one, "group_id", manifest_group) for one in referring),
    )
    return _delete_unreferenced(tx, manifest_group, empty, limit)


def delete_old_declarations(tx: Transaction, before: datetime, limit: int) -> int:
    """Forget applied declarations, except the newest thousand of each application."""
    newest_first = func.row_number().over(
        partition_by=declaration.c.application, order_by=declaration.c.id.desc()
    )
    ranks = select(declaration.c.id, newest_first.label("place")).subquery("ranks")
    beyond = select(ranks.c.id).where(ranks.c.place > DECLARATIONS_KEPT)
    old = and_(declaration.c.applied_at < before, declaration.c.id.in_(beyond))
    return _delete(tx, declaration, old, limit)


def delete_old_tallies(tx: Transaction, before: datetime, limit: int) -> int:
    """Forget what ended when, but not up to when everything has been counted."""
    key = tuple_(tally.c.span, tally.c.group_id, tally.c.starts_at)
    old = and_(tally.c.starts_at < before, tally.c.span != word("until"))
    batch = select(*tally.primary_key).where(old).order_by(tally.c.starts_at).limit(limit)
    return tx.connection.execute(delete(tally).where(key.in_(batch))).rowcount


def _refers(table: Table, column: str, subject: Table) -> ColumnElement[bool]:
    return exists().where(table.c[column] == subject.c.id).correlate(subject)


def _delete_unreferenced(
    tx: Transaction, table: Table, unreferenced: ColumnElement[bool], limit: int
) -> int:
    """Lock first, then look again: a reference that came in between is seen by the second look."""
    batch = select(table.c.id).where(unreferenced).order_by(table.c.id).limit(limit)
    ids: list[Any] = list(tx.connection.execute(batch.with_for_update(skip_locked=True)).scalars())
    if not ids:
        return 0
    chosen = and_(among(tx, table.c.id, ids), unreferenced)
    return tx.connection.execute(delete(table).where(chosen)).rowcount


def _delete(tx: Transaction, table: Table, old: ColumnElement[bool], limit: int) -> int:
    batch = select(table.c.id).where(old).order_by(table.c.id).limit(limit)
    return tx.connection.execute(delete(table).where(among_found(tx, table.c.id, batch))).rowcount
