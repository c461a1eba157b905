"""Cancelling what is queued, pending or running, wherever it is at this moment."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select

from headway.domain.execution import ExecutionState
from headway.store import executions, outcomes
from headway.store.activation import release_held
from headway.store.cancelled_entries import cancel_entries
from headway.store.edges import consume
from headway.store.settling import settle_cancelled
from headway.store.tables import execution, execution_history, manifest, manifest_group, work_queue
from headway.store.transaction import Transaction
from headway.store.wakes import Scope, leave_wakes

# Between two statements a run may be handed back and be queued again, behind the one that looked.
PASSES = 3


@dataclass(frozen=True)
class Target:
    """What to cancel, in the words of the two live tables."""

    entries: ColumnElement[bool]
    executions: ColumnElement[bool]


@dataclass(frozen=True)
class Reached:
    """The entries that never start, and the runs that were asked to stop now or before."""

    cancelled: int
    requested: int


def of_manifest(tx: Transaction, external_id: str) -> Target | None:
    """Everything of the manifest with this name, if there is one."""
    known = select(manifest.c.id).where(
        manifest.c.external_id == external_id, manifest.c.removed_at.is_(None)
    )
    key = tx.connection.execute(known).scalar()
    if key is None:
        return None
    return Target(work_queue.c.manifest_id == key, execution.c.manifest_id == key)


def of_group(tx: Transaction, name: str) -> Target | None:
    """Everything of the group with this name, if there is one."""
    known = select(manifest_group.c.id).where(manifest_group.c.name == name)
    key = tx.connection.execute(known).scalar()
    if key is None:
        return None
    return Target(work_queue.c.group_id == key, execution.c.group_id == key)


def of_entry(entry_id: int) -> Target:
    """What an entry has become: itself, or the execution it was dispatched as."""
    return Target(work_queue.c.id == entry_id, execution.c.entry_id == entry_id)


def of_execution(entry_id: int, execution_id: int) -> Target:
    """One execution, and its entry should it be queued again meanwhile."""
    return Target(work_queue.c.id == entry_id, execution.c.id == execution_id)


def how_entry_ended(tx: Transaction, entry_id: int) -> ExecutionState | None:
    """How an entry ended, as one that never started or as its last execution; None if unknown."""
    unstarted = select(work_queue.c.status).where(work_queue.c.id == entry_id)
    last = (
        select(execution_history.c.state)
        .where(execution_history.c.entry_id == entry_id)
        .order_by(execution_history.c.id.desc())
        .limit(1)
    )
    found = tx.connection.execute(unstarted).scalar() or tx.connection.execute(last).scalar()
    return None if found is None else ExecutionState(found)


def cancel(tx: Transaction, target: Target, reason: str) -> Reached:
    """Cancel whatever of *target* has not started, and ask what has to stop.

    In the order work goes: what the first statement does not find any more, the next one does.
    """
    cancelled = 0
    for _ in range(PASSES):
        entries = _cancel_entries(tx, target.entries, reason)
        pending = outcomes.cancel_pending(tx, target.executions, reason)
        if not entries and not pending:
            break
        cancelled += entries + len(pending)
    asked = executions.ask_to_stop(tx, target.executions, reason)
    return Reached(cancelled, asked)


def _cancel_entries(tx: Transaction, chosen: ColumnElement[bool], reason: str) -> int:
    rows = cancel_entries(tx, chosen, reason)
    settle_cancelled(tx, _newest_occurrences(rows))
    consume(tx, [row.parents_seen for row in rows])
    concerned = sorted({row.manifest_id for row in rows if row.manifest_id is not None})
    release_held(tx, concerned)
    leave_wakes(tx, [(key, Scope.SELF) for key in concerned])
    return len(rows)


def _newest_occurrences(rows: Iterable[Any]) -> dict[int, datetime]:
    newest: dict[int, datetime] = {}
    for row in rows:
        if row.manifest_id is not None and row.scheduled_for is not None:
            known = newest.get(row.manifest_id, row.scheduled_for)
            newest[row.manifest_id] = max(known, row.scheduled_for)
    return newest
