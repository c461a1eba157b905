"""Pages of the work queue, in the order of dispatch; what waits for a later time comes last."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, func, literal, or_, select, tuple_

from headway.domain.views import EntryOverview, QueueFilter
from headway.domain.work_queue import Source
from headway.store.eligibility import delayed, in_order, queued, ready
from headway.store.reading.bounded import EXAMINED, capped_count
from headway.store.reading.names import group_named, manifest_named
from headway.store.reading.queue import of_ids
from headway.store.reading.queue_lanes import PLACED, Place, first_ready, narrow
from headway.store.tables import manifest_group, work_queue
from headway.store.transaction import Transaction
from headway.store.types import Instant

# How many entries are read at once while those of one source are looked for.
AT_ONCE = 500
# Up to so many entries are sorted to show a page; more are looked through lane by lane.
SORTED = 20_000

Chosen = dict[str, int]
EVERYTHING = QueueFilter()
# In this order the index is read, and not the table with all that is over.
_AS_INDEXED = (work_queue.c.group_id, *in_order(work_queue))


def page(
    tx: Transaction, wanted: QueueFilter, after: Place | None, limit: int
) -> tuple[list[EntryOverview], Place | None]:
    """The next entries after the place *after*, and the place to go on from."""
    chosen = _chosen(tx, wanted)
    if chosen is None:
        return [], None
    found: list[Any] = []
    looked_at, read = 0, limit + 1 if wanted == EVERYTHING else AT_ONCE
    while True:
        some = _next(tx, chosen, wanted.source, after, read)
        looked_at += len(some)
        found += [row for row in some if _matches(row, wanted, chosen)]
        if len(found) > limit:
            return _shown(tx, found[:limit]), _place(found[limit - 1])
        if len(some) < read:
            return _shown(tx, found), None
        after = _place(some[-1])
        if looked_at >= EXAMINED:
            return _shown(tx, found), after


def _matches(row: Any, wanted: QueueFilter, chosen: Chosen) -> bool:
    own_group = row.group_id == chosen.get("group_id", row.group_id)
    return own_group and wanted.source in (None, row.source)


def _shown(tx: Transaction, rows: list[Any]) -> list[EntryOverview]:
    return of_ids(tx, [row.id for row in rows])


def _chosen(tx: Transaction, wanted: QueueFilter) -> Chosen | None:
    """What the entries belong to; None if there is no such thing."""
    chosen: Chosen = {}
    sought: tuple[tuple[str, str | None, Callable[[Transaction, str], int | None]], ...] = (
        ("group_id", wanted.group, group_named),
        ("manifest_id", wanted.manifest, manifest_named),
    )
    for column, name, find in sought:
        if name is not None:
            key = find(tx, name)
            if key is None:
                return None
            chosen[column] = key
    return chosen


def _next(
    tx: Transaction, chosen: Chosen, source: Source | None, after: Place | None, limit: int
) -> list[Any]:
    """Ready entries, and if these do not suffice those that wait for their time."""
    rows: list[Any] = []
    if after is None or not after.later:
        rows += _ready(tx, chosen, source, after, limit)
        after = None
    if len(rows) < limit:
        rows += _delayed(tx, chosen, after, limit - len(rows))
    return rows


def _ready(
    tx: Transaction, chosen: Chosen, source: Source | None, after: Place | None, limit: int
) -> list[Any]:
    """The next ready entries; those of other sources may be among them."""
    if chosen:
        # The entries of one group, or of one manifest, stand in this order in their index.
        own = (work_queue.c[name] == key for name, key in chosen.items())
        statement = narrow().where(ready(work_queue), *own).order_by(*in_order(work_queue))
        if after is not None:
            statement = statement.where(_behind(after))
        return list(tx.connection.execute(statement.limit(limit)))
    if tx.on_postgresql and not _is_short(tx):
        return first_ready(tx, after, limit)
    return _sorted(tx, source, after, limit)


def _is_short(tx: Transaction) -> bool:
    ids = select(work_queue.c.id).where(ready(work_queue)).order_by(*_AS_INDEXED)
    return bool(tx.connection.execute(capped_count(ids, SORTED + 1)).scalar_one() <= SORTED)


def _sorted(tx: Transaction, source: Source | None, after: Place | None, limit: int) -> list[Any]:
    """The first of a queue that is short enough to be sorted whole."""
    waiting = select(*PLACED).where(ready(work_queue)).order_by(*_AS_INDEXED)
    entry = waiting.limit(SORTED).subquery()
    own = func.coalesce(manifest_group.c.priority, 0)
    statement = (
        select(*entry.c, own.label("group_priority"))
        .select_from(entry.outerjoin(manifest_group, manifest_group.c.id == entry.c.group_id))
        .order_by(own.desc(), *in_order(entry))
        .limit(limit)
    )
    if source is not None:
        statement = statement.where(entry.c.source == source)
    if after is not None:
        same_group = and_(own == after.group_priority, _behind(after, entry))
        statement = statement.where(or_(own < after.group_priority, same_group))
    return list(tx.connection.execute(statement))


def _behind(after: Place, entry: FromClause = work_queue) -> ColumnElement[bool]:
    here = tuple_(literal(after.moment, Instant), after.id)
    age = tuple_(entry.c.created_at, entry.c.id) > here
    # The first tells the index where to begin.
    return and_(entry.c.priority <= after.priority, or_(entry.c.priority < after.priority, age))


def _delayed(tx: Transaction, chosen: Chosen, after: Place | None, limit: int) -> list[Any]:
    """Of any group: they stand by their times, and a page looks at so many and no more."""
    entry = work_queue.c
    statement = narrow().where(queued(work_queue), delayed(work_queue))
    if "manifest_id" in chosen:
        statement = statement.where(entry.manifest_id == chosen["manifest_id"])
    if after is not None:
        later = tuple_(entry.scheduled_at, entry.id) > tuple_(
            literal(after.moment, Instant), after.id
        )
        statement = statement.where(entry.scheduled_at >= after.moment, later)
    ordered = statement.order_by(entry.scheduled_at, entry.id).limit(limit)
    return list(tx.connection.execute(ordered))


def _place(row: Any) -> Place:
    moment = row.scheduled_at if row.delayed else row.created_at
    return Place(bool(row.delayed), row.group_priority, row.priority, moment, row.id)
