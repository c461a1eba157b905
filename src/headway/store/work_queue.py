"""The work queue: everyone inserts entries, only the dispatcher takes them out.

A dispatched entry is folded into its execution row (docs/decisions/001).
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    Text,
    and_,
    case,
    delete,
    func,
    insert,
    literal,
    not_,
    select,
    true,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from headway.domain.execution import ExecutionState
from headway.domain.routing import LOCAL
from headway.domain.work_queue import NewEntry
from headway.store.cancelled_entries import cancel_entries
from headway.store.dead_letters import link_retries
from headway.store.dispatchable import dispatchable as dispatchable
from headway.store.edges import parents_seen
from headway.store.eligibility import QUEUED
from headway.store.engine import TRANSIENT
from headway.store.rows import unnested
from headway.store.tables import execution, manifest, manifest_group, work_queue
from headway.store.transaction import (
    Transaction,
    among,
    insert_or_ignore,
    locked_in_order,
    word,
)
from headway.store.types import Instant
from headway.store.wakes import Scope, leave_wakes

# How each database names the rule that a manifest runs once at a time.
SINGLE_FLIGHT_BROKEN = {
    True: "headway_execution_single_flight",
    False: "headway_execution.manifest_id",
}
NO_LONGER_DECLARED = "the manifest is no longer declared"
NOWHERE_ELSE: Mapping[int, str] = MappingProxyType({})


def enqueue(tx: Transaction, entries: Sequence[NewEntry]) -> list[int]:
    """Queue *entries* and return the ids of those queued.

    A second automatic entry for a manifest that already has one queued is left out.
    """
    if not entries:
        return []
    statement = insert_or_ignore(tx, work_queue).returning(work_queue.c.id)
    rows = [_row(tx, entry) for entry in entries]
    if not tx.on_postgresql:
        dated = [row | {"created_at": tx.now} for row in rows]
        return list(tx.connection.execute(statement, dated).scalars())
    columns = [work_queue.c[name] for name in rows[0]]
    given = select(unnested(columns, [tuple(row.values()) for row in rows]))
    given = given.add_columns(literal(tx.now, Instant))
    statement = statement.from_select([*columns, work_queue.c.created_at], given)
    return list(tx.connection.execute(statement).scalars())


def enqueue_each(tx: Transaction, entries: Sequence[NewEntry]) -> tuple[list[int], dict[int, str]]:
    """Queue *entries* of manifests, each on its own account: one the database refuses costs no
    other. Returns the ids of those queued, and of which manifests none was, and why.
    """
    try:
        with tx.connection.begin_nested():
            return enqueue(tx, entries), {}
    except DBAPIError as error:
        if isinstance(error, TRANSIENT) or error.connection_invalidated:
            raise
        if len(entries) == 1:
            return [], {entries[0].manifest_id or 0: repr(error.orig)}
    # All at once were refused: halves find the culprit without a statement for each.
    middle = len(entries) // 2
    queued, refused = enqueue_each(tx, entries[:middle])
    more, others = enqueue_each(tx, entries[middle:])
    return queued + more, refused | others


def _row(tx: Transaction, entry: NewEntry) -> dict[str, Any]:
    return {
        "workflow": entry.workflow,
        "source": entry.source.value,
        "input": entry.input,
        "input_type": entry.input_type,
        "priority": entry.priority,
        "manifest_id": entry.manifest_id,
        "group_id": entry.group_id,
        "scheduled_at": entry.scheduled_at,
        "scheduled_for": entry.scheduled_for,
        "attempts": entry.attempts,
        "max_attempts": entry.max_attempts,
        "parents_seen": entry.parents_seen,
        "delayed": entry.scheduled_at is not None and entry.scheduled_at > tx.now,
    }


# What an execution takes over from its entry, under the execution's names.
FOLDED: dict[str, str] = {
    "entry_id": "id",
    "manifest_id": "manifest_id",
    "group_id": "group_id",
    "workflow": "workflow",
    "input_type": "input_type",
    "input": "input",
    "source": "source",
    "priority": "priority",
    "queued_at": "created_at",
    "scheduled_at": "scheduled_at",
    "scheduled_for": "scheduled_for",
    "max_attempts": "max_attempts",
    "dispatch_attempts": "dispatch_attempts",
    "crashes": "crashes",
    "dead_letter_id": "dead_letter_id",
}


def dispatch_each(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str] = NOWHERE_ELSE
) -> tuple[dict[int, int], dict[int, str]]:
    """Dispatch entries, each on its own account: one the database refuses costs no other.

    Those *elsewhere* go to the task server named there. Returns entry → execution, and why the
    others were refused. One whose manifest has come to run in the meantime is in neither: it waits.
    """
    try:
        with tx.connection.begin_nested():
            return dispatch(tx, entry_ids, elsewhere), {}
    except DBAPIError as error:
        if isinstance(error, TRANSIENT) or error.connection_invalidated:
            raise
        if len(entry_ids) == 1:
            busy = isinstance(error, IntegrityError) and SINGLE_FLIGHT_BROKEN[
                tx.on_postgresql
            ] in str(error.orig)
            return {}, {} if busy else {entry_ids[0]: repr(error.orig)}
    middle = len(entry_ids) // 2
    dispatched, refused = dispatch_each(tx, entry_ids[:middle], elsewhere)
    more, others = dispatch_each(tx, entry_ids[middle:], elsewhere)
    return dispatched | more, refused | others


def dispatch(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str] = NOWHERE_ELSE
) -> dict[int, int]:
    """Turn queued entries into pending executions; returns entry id → execution id.

    All are for the own workers but those *elsewhere*, by the name of their task server. An entry
    that is no longer queued is left out: somebody else ended it in between.
    """
    if not entry_ids:
        return {}
    fold = _fold_on_postgresql if tx.on_postgresql else _fold_on_sqlite
    created = fold(tx, entry_ids, elsewhere)
    link_retries(tx, {row.dead_letter_id: row.id for row in created if row.dead_letter_id})
    # The schedule of what may overlap waits for no end: it goes on as soon as the queue is free.
    leave_wakes(tx, [(row.manifest_id, Scope.SELF) for row in created if not row.single_flight])
    return {row.entry_id: row.id for row in created}


def _fold_on_postgresql(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str]
) -> Sequence[Any]:
    """One statement: what the DELETE returns is what the INSERT writes."""
    # An entry somebody else is changing waits for the next cycle; it must not hold up this one.
    chosen = and_(among(tx, work_queue.c.id, entry_ids), QUEUED)
    taken = (
        delete(work_queue)
        .where(locked_in_order(work_queue, chosen, wait=False))
        .returning(*work_queue.c)
        .cte("taken")
    )
    return tx.connection.execute(_insert_executions(tx, taken, elsewhere)).all()


def _fold_on_sqlite(
    tx: Transaction, entry_ids: Sequence[int], elsewhere: Mapping[int, str]
) -> Sequence[Any]:
    """SQLite has no DELETE inside WITH; its one writer makes two statements as good as one."""
    taken = (
        select(work_queue).where(among(tx, work_queue.c.id, entry_ids), QUEUED).subquery("taken")
    )
    created = tx.connection.execute(_insert_executions(tx, taken, elsewhere)).all()
    ids = [row.entry_id for row in created]
    tx.connection.execute(delete(work_queue).where(among(tx, work_queue.c.id, ids)))
    return created


def _insert_executions(tx: Transaction, taken: Any, elsewhere: Mapping[int, str]) -> Any:
    pending: Select[Any] = (
        select(
            *(taken.c[name] for name in FOLDED.values()),
            parents_seen(tx, taken.c.manifest_id),
            taken.c.attempts + 1,
            word(ExecutionState.PENDING),
            literal(tx.now, Instant),
            manifest.c.external_id,
            manifest_group.c.name,
            func.coalesce(not_(manifest.c.allow_overlap), true()),
            _task_server(tx, taken.c.id, elsewhere),
        )
        .select_from(
            taken.outerjoin(manifest, manifest.c.id == taken.c.manifest_id).outerjoin(
                manifest_group, manifest_group.c.id == taken.c.group_id
            )
        )
        .order_by(taken.c.id)
    )
    columns = [
        *FOLDED,
        "parents_seen",
        "attempt",
        "state",
        "dispatched_at",
        "external_id",
        "group_name",
        "single_flight",
        "task_server",
    ]
    returned = ("id", "entry_id", "manifest_id", "dead_letter_id", "single_flight")
    return (
        insert(execution)
        .from_select(columns, pending)
        .returning(*(execution.c[name] for name in returned))
    )


def _task_server(
    tx: Transaction, entry_id: Column[Any], elsewhere: Mapping[int, str]
) -> ColumnElement[str]:
    """One branch for each server, not for each entry."""
    names = sorted(set(elsewhere.values()))
    ids = {name: [key for key, sent in elsewhere.items() if sent == name] for name in names}
    branches = [(among(tx, entry_id, ids[name]), literal(name, Text)) for name in names]
    return case(*branches, else_=word(LOCAL)) if branches else word(LOCAL)


def requeue(
    tx: Transaction, executions: Sequence[Any], crashed: Collection[int] = frozenset()
) -> None:
    """Put the entries of *executions* back under their own ids, their attempts uncharged.

    Those that *crashed* are counted as such. Those of manifests removed in the meantime end as
    cancelled: nothing would dispatch them.
    """
    rows = [
        folded_back(row)
        | {"attempts": row.attempt - 1, "crashes": row.crashes + (row.id in crashed)}
        for row in executions
    ]
    if rows:
        put_back(tx, rows)


def folded_back(row: Any) -> dict[str, Any]:
    """The entry an execution was made of."""
    return {entry: getattr(row, name) for name, entry in FOLDED.items()}


def put_back(tx: Transaction, rows: Sequence[dict[str, Any]]) -> None:
    """Write entries under the ids they had; those of removed manifests end as cancelled."""
    tx.connection.execute(insert_or_ignore(tx, work_queue), rows)
    concerned = [row["manifest_id"] for row in rows if row["manifest_id"] is not None]
    removed = select(manifest.c.id).where(
        among(tx, manifest.c.id, concerned), manifest.c.removed_at.is_not(None)
    )
    cancel_queued(tx, tx.connection.execute(removed).scalars().all(), NO_LONGER_DECLARED)


def cancel_queued(tx: Transaction, manifest_ids: Sequence[int], reason: str) -> int:
    """End every entry of these manifests that is queued, or held until its child is free."""
    if not manifest_ids:
        return 0
    return len(cancel_entries(tx, among(tx, work_queue.c.manifest_id, manifest_ids), reason))
