"""Entries that end without ever becoming a run: visibly, with a reason, and counted once.

The entry stays in the queue as failed. A failed attempt in the history makes it count like any
other failure: the manager retries with backoff, and dead-letters the manifest in the end.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)

from headway.domain.execution import ExecutionState, FailureCode
from headway.domain.text import printable
from headway.domain.work_queue import EntryStatus
from headway.store.activation import release_held
from headway.store.eligibility import QUEUED
from headway.store.execution_ids import reserve_on_sqlite
from headway.store.folding import FOLDED
from headway.store.tables import (
    execution,
    execution_history,
    manifest,
    manifest_group,
    work_queue,
)
from headway.store.transaction import Transaction, among, locked_in_order, word
from headway.store.types import Instant
from headway.store.wakes import Scope, leave_wakes

REASON_LIMIT = 1000
STEP = "DispatchJobs"
MOST_ATTEMPTS = 2**31 - 1


def fail(tx: Transaction, reasons: Mapping[int, str], code: FailureCode) -> list[int]:
    """End these queued entries as failed, each with its reason; returns those that were queued.

    One that somebody else is changing at this moment is left for the next cycle.
    """
    failed: list[int] = []
    for reason in sorted(set(reasons.values())):
        ids = [key for key, why in reasons.items() if why == reason]
        failed += _fail_for(tx, ids, printable(reason, REASON_LIMIT), code)
    return sorted(failed)


def _fail_for(tx: Transaction, ids: Sequence[int], reason: str, code: FailureCode) -> list[int]:
    chosen = and_(QUEUED, among(tx, work_queue.c.id, ids))
    statement = (
        update(work_queue)
        .where(locked_in_order(tx, work_queue, chosen, wait=False))
        .values(status=EntryStatus.FAILED.value, ended_at=tx.now, ended_reason=reason)
        .returning(work_queue.c.id)
    )
    ended = sorted(tx.connection.execute(statement).scalars())
    if ended:
        freed = _write_history(tx, ended, reason, code)
        leave_wakes(tx, [(key, Scope.SELF) for key in freed])
        release_held(tx, freed)
    return ended


def _write_history(
    tx: Transaction, ids: Sequence[int], reason: str, code: FailureCode
) -> list[int]:
    """A failed attempt for each entry; returns the manifests that still exist."""
    first_id = None if tx.on_postgresql else reserve_on_sqlite(tx, len(ids))
    attempts = work_queue.c.attempts
    values: dict[str, Any] = {
        "id": _next_id(first_id),
        **{name: work_queue.c[column] for name, column in FOLDED.items()},
        "parents_seen": work_queue.c.parents_seen,
        "attempt": case((attempts < MOST_ATTEMPTS, attempts + 1), else_=attempts),
        "state": word(ExecutionState.FAILED),
        "dispatched_at": literal(tx.now, Instant),
        "finished_at": literal(tx.now, Instant),
        "external_id": manifest.c.external_id,
        "group_name": manifest_group.c.name,
        "failure_step": literal(STEP),
        "failure_type": literal(str(code)),
        "failure_message": literal(reason),
    }
    entries = (
        select(*values.values())
        .select_from(
            work_queue.outerjoin(manifest, manifest.c.id == work_queue.c.manifest_id).outerjoin(
                manifest_group, manifest_group.c.id == work_queue.c.group_id
            )
        )
        .where(among(tx, work_queue.c.id, ids))
    )
    written = (
        insert(execution_history)
        .from_select(list(values), entries)
        .returning(execution_history.c.manifest_id, execution_history.c.external_id)
    )
    rows = tx.connection.execute(written).all()
    return sorted({row.manifest_id for row in rows if row.external_id is not None})


def _next_id(first_id: int | None) -> ColumnElement[int]:
    """An id from where executions get theirs: failures are counted in the order of ids."""
    if first_id is None:
        return func.nextval(func.pg_get_serial_sequence(execution.name, "id"))
    place = func.row_number().over(order_by=work_queue.c.id)
    return place + literal_column(str(first_id - 1))
