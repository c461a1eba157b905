"""The work queue: everyone inserts entries, only the dispatcher takes them out.

A dispatched entry is folded into its execution row (docs/decisions/001).
"""

from collections.abc import Collection, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Text, bindparam, func, insert, literal, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import ReturningInsert

from headway.domain.work_queue import NewEntry
from headway.store.cancelled_entries import cancel_entries
from headway.store.dispatchable import dispatchable as dispatchable
from headway.store.dispatching import dispatch as dispatch
from headway.store.dispatching import dispatch_each as dispatch_each
from headway.store.engine import TRANSIENT
from headway.store.folding import FOLDED
from headway.store.rows import unnested
from headway.store.tables import manifest, work_queue
from headway.store.transaction import (
    Draft,
    Transaction,
    among,
    drafted_to_queue,
    insert_or_ignore,
)
from headway.store.types import Instant, Listed

# What is written of a new entry: what it says of itself, and what follows from that.
TAKEN_OVER = (
    "workflow",
    "input",
    "input_type",
    "priority",
    "manifest_id",
    "group_id",
    "scheduled_at",
    "scheduled_for",
    "attempts",
    "max_attempts",
    "parents_seen",
)
COLUMNS = (*TAKEN_OVER, "source", "delayed")
_taken_over = attrgetter(*TAKEN_OVER)
NO_LONGER_DECLARED = "the manifest is no longer declared"


def enqueue(tx: Transaction, entries: Sequence[NewEntry]) -> list[int]:
    """Queue *entries* and return the ids of those queued.

    A second automatic entry for a manifest that already has one queued is left out.
    """
    if not entries:
        return []
    if len(entries) == 1:
        draft, moment = drafted_to_queue(tx)
        given = {f"new_{name}": value for name, value in _row(tx, entries[0]).items()}
        return [row.id for row in tx.ask(_enqueue_one(draft), given | moment)]
    statement = insert_or_ignore(tx, work_queue).returning(work_queue.c.id)
    if not tx.on_postgresql:
        dated = [_row(tx, entry) | {"created_at": tx.now} for entry in entries]
        return list(tx.connection.execute(statement, dated).scalars())
    columns = [work_queue.c[name] for name in COLUMNS]
    values = select(unnested(columns, [_values(tx, entry) for entry in entries]))
    values = values.add_columns(literal(tx.now, Instant))
    statement = statement.from_select([*columns, work_queue.c.created_at], values)
    return list(tx.connection.execute(statement).scalars())


@cache
def _enqueue_one(draft: Draft) -> ReturningInsert[Any]:
    given = {name: bindparam(f"new_{name}", type_=work_queue.c[name].type) for name in COLUMNS}
    new = insert_or_ignore(draft, work_queue).values(given | {"created_at": draft.now})
    return new.returning(work_queue.c.id, *draft.told())


def enqueue_like(tx: Transaction, like: NewEntry, inputs: Sequence[str]) -> None:
    """Queue an entry for each of *inputs*, in all else *like* this one, which has no manifest."""
    row = _row(tx, like) | {"created_at": tx.now}
    if not tx.on_postgresql:
        tx.connection.execute(insert(work_queue), [row | {"input": one} for one in inputs])
        return
    columns = [work_queue.c[name] for name in row]
    given = bindparam("inputs", list(inputs), type_=Listed(Text()))
    values = [
        func.unnest(given) if one.name == "input" else literal(row[one.name], one.type)
        for one in columns
    ]
    tx.connection.execute(insert(work_queue).from_select(columns, select(*values)))


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
    return dict(zip(COLUMNS, _values(tx, entry), strict=True))


def _values(tx: Transaction, entry: NewEntry) -> tuple[Any, ...]:
    """What is written of an entry, in the order of :data:`COLUMNS`."""
    delayed = entry.scheduled_at is not None and entry.scheduled_at > tx.now
    return (*_taken_over(entry), entry.source.value, delayed)


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
