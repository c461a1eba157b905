"""What an explanation reads about one manifest, one entry or one execution. Only SELECTs.

Each is a look by key, or into the live executions, of which there are never more than the limits
allow: none of it grows with the number of manifests, entries or finished runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.entry_gates import NAMED_HOLDERS, Refusal, Standing
from headway.domain.execution import Execution, ExecutionState, FailureCode
from headway.domain.routing import Share
from headway.domain.work_queue import EntryStatus
from headway.store.eligibility import (
    OVERLAPPING,
    QUEUED,
    SINGLE_FLIGHT,
    conditions,
    entry,
    in_order,
    is_due,
)
from headway.store.entry_rows import entry_rows, to_entry
from headway.store.execution_rows import to_execution
from headway.store.executions import IS_LOCAL
from headway.store.tables import (
    dead_letter,
    execution,
    executions,
    manifest,
    manifest_group,
    work_queue,
)
from headway.store.transaction import Transaction, word


@dataclass(frozen=True)
class Ended:
    """An entry that ended without ever being dispatched."""

    external_id: str | None
    workflow: str
    status: EntryStatus
    ended_at: datetime | None
    reason: str | None


def manifest_id_of(tx: Transaction, external_id: str) -> int | None:
    """The manifest with this external id."""
    statement = select(manifest.c.id).where(
        manifest.c.external_id == external_id, manifest.c.removed_at.is_(None)
    )
    return tx.connection.execute(statement).scalar()


def group_cap_of(tx: Transaction, group_id: int) -> int | None:
    """The cap of this group."""
    statement = select(manifest_group.c.max_active_jobs).where(manifest_group.c.id == group_id)
    return tx.connection.execute(statement).scalar()


def next_entry_of(tx: Transaction, manifest_id: int) -> int | None:
    """The entry of this manifest that is dispatched next: the best that is due, else the first to
    become so."""
    mine = select(work_queue.c.id).where(QUEUED, work_queue.c.manifest_id == manifest_id).limit(1)
    due = mine.where(is_due(tx, work_queue)).order_by(*in_order(work_queue))
    later = mine.order_by(work_queue.c.scheduled_at, work_queue.c.id)
    found: int | None = tx.connection.execute(due).scalar()
    return found if found is not None else tx.connection.execute(later).scalar()


def standing_of(tx: Transaction, entry_id: int, taken: Sequence[Share] | None) -> Standing | None:
    """The entry of this id, if it waits, with the answer to everything that is asked of it."""
    waiting = work_queue.c.status.in_([word(EntryStatus.QUEUED), word(EntryStatus.HELD)])
    chosen = entry_rows(tx, work_queue).where(work_queue.c.id == entry_id, waiting)
    row = tx.connection.execute(chosen).one_or_none()
    if row is None:
        return None
    asked = conditions(tx, taken)
    joined = entry.outerjoin(manifest, manifest.c.id == entry.c.manifest_id).outerjoin(
        manifest_group, manifest_group.c.id == entry.c.group_id
    )
    columns = (condition.label(f"gate_{place}") for place, condition in enumerate(asked.values()))
    statement = select(
        entry.c.status, entry.c.attempts, entry.c.dispatch_attempts, *columns
    ).select_from(joined)
    found = tx.connection.execute(statement.where(entry.c.id == entry_id)).one()
    answers = {name: bool(found[3 + place]) for place, name in enumerate(asked)}
    held = found.status == EntryStatus.HELD
    refusal = _refusal_of(tx, entry_id, found.dispatch_attempts)
    return Standing(to_entry(row), answers, row.scheduled_at, found.attempts, held, refusal)


def _refusal_of(tx: Transaction, entry_id: int, refusals: int) -> Refusal | None:
    """The last refusal of an entry that task servers refused so many times."""
    if not refusals:
        return None
    last = last_execution_of(tx, entry_id)
    failure = None if last is None else last.failure
    if last is None or failure is None or failure.type != FailureCode.REFUSED:
        return None
    return Refusal(last.task_server, refusals, failure.message)


def ended_entry(tx: Transaction, entry_id: int) -> Ended | None:
    """The entry of this id, if it was cancelled or failed in the queue."""
    statement = (
        select(work_queue, manifest.c.external_id)
        .outerjoin(manifest, manifest.c.id == work_queue.c.manifest_id)
        .where(work_queue.c.id == entry_id)
    )
    row = tx.connection.execute(statement).one_or_none()
    if row is None:
        return None
    status = EntryStatus(row.status)
    return Ended(row.external_id, row.workflow, status, row.ended_at, row.ended_reason)


def last_execution_of(tx: Transaction, entry_id: int) -> Execution | None:
    """What an entry was last dispatched as."""
    return _newest(tx, executions.c.entry_id == entry_id)


def live_execution_of(tx: Transaction, manifest_id: int) -> Execution | None:
    """The newest run of a manifest that is pending or in progress."""
    mine = execution.c.manifest_id == manifest_id
    of_either_kind = or_(and_(mine, SINGLE_FLIGHT), and_(mine, OVERLAPPING))
    newest = select(func.max(execution.c.id)).where(of_either_kind).scalar_subquery()
    return _newest(tx, executions.c.id == newest)


def _newest(tx: Transaction, chosen: ColumnElement[bool]) -> Execution | None:
    statement = select(executions).where(chosen).order_by(executions.c.id.desc()).limit(1)
    row: Any = tx.connection.execute(statement).one_or_none()
    return None if row is None else to_execution(row)


def holders_of(tx: Transaction, group_id: int) -> tuple[str, ...]:
    """Some of the runs that hold the slots of a group, the longest running first."""
    statement = (
        select(func.coalesce(execution.c.external_id, execution.c.workflow))
        .where(execution.c.group_id == group_id)
        .order_by(execution.c.id)
        .limit(NAMED_HOLDERS)
    )
    return tuple(tx.connection.execute(statement).scalars())


def running_here(tx: Transaction) -> int:
    """How many runs the own workers have in progress."""
    in_progress = execution.c.state == word(ExecutionState.IN_PROGRESS)
    statement = select(func.count()).select_from(execution).where(IS_LOCAL, in_progress)
    return tx.connection.execute(statement).scalar_one()


def dead_letter_of(tx: Transaction, manifest_id: int) -> tuple[int, str] | None:
    """Id and reason of the dead letter that waits for a person."""
    statement = select(dead_letter.c.id, dead_letter.c.reason).where(
        dead_letter.c.manifest_id == manifest_id,
        dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION),
    )
    row = tx.connection.execute(statement).one_or_none()
    return None if row is None else (row.id, row.reason)
