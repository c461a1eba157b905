"""The first entries of lanes that may run: a walk down each, up to a limit."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import JSON, Integer, Select, and_, bindparam, func, or_, select, tuple_

from headway.domain.lanes import Lane
from headway.domain.routing import Share
from headway.domain.work_queue import WorkQueueEntry, dispatch_order
from headway.store.eligibility import eligible, entry, group_open, in_order
from headway.store.entry_rows import entry_rows, to_entry, walked_rows
from headway.store.rows import unnest_of
from headway.store.tables import work_queue
from headway.store.transaction import Draft, Transaction, draft_for
from headway.store.types import Instant

LIMIT = bindparam("limit", type_=Integer)


def first_of_lanes(
    tx: Transaction,
    taken: Sequence[Share] | None,
    chosen: Sequence[Lane],
    limit: int,
    aged_before: datetime | None = None,
) -> Mapping[Lane, list[WorkQueueEntry]]:
    """The first *limit* entries of each lane's group that may run, in the order of dispatch.

    With *aged_before*, of each lane alone, and of what is older than that.
    """
    return _fetch(tx, taken, chosen, limit, _Part(aged=aged_before is not None), aged_before)


def onward_from(
    tx: Transaction, taken: Sequence[Share] | None, chosen: Sequence[Lane], limit: int
) -> Mapping[Lane, list[WorkQueueEntry]]:
    """The first *limit* entries of each lane alone from where it is said to begin, if its group is
    still open: whatever has been deleted before that is not passed. For PostgreSQL, which would."""
    return _fetch(tx, taken, chosen, limit, _Part(onward=True))


def first_of(draft: Draft, taken: tuple[Share, ...], grouped: bool) -> Select[Any]:
    """The statement behind :func:`first_of_lanes`, for lanes of groups or for what has none."""
    return _first_of(draft, taken, grouped, _Part())


class _Part(NamedTuple):
    """Which part of a group is meant: all of it, or of one lane what is old or comes next."""

    aged: bool = False
    onward: bool = False

    def place(self, one: Lane | WorkQueueEntry) -> tuple[int | None, ...]:
        """What tells lanes apart: the group, and the priority where it is about one lane."""
        return (one.group_id, one.priority) if self.aged or self.onward else (one.group_id,)


def _fetch(
    tx: Transaction,
    taken: Sequence[Share] | None,
    chosen: Sequence[Lane],
    limit: int,
    part: _Part,
    aged_before: datetime | None = None,
) -> Mapping[Lane, list[WorkQueueEntry]]:
    by_place = {part.place(lane): lane for lane in chosen}
    found: dict[Lane, list[WorkQueueEntry]] = {lane: [] for lane in chosen}
    shares = None if taken is None else tuple(taken)
    for grouped in (True, False):
        some = [lane for lane in chosen if (lane.group_id is not None) is grouped]
        if some:
            asked = {"now": tx.now, "limit": limit, **_given(tx, some, part)}
            if aged_before is not None:
                asked["aged_before"] = aged_before
            statement = _first_of(draft_for(tx), shares, grouped, part)
            for row in tx.ask(statement, asked):
                one = to_entry(row)
                found[by_place[part.place(one)]].append(one)
    for entries in found.values():
        entries.sort(key=dispatch_order)
    return found


# As many as there are ways to route; each is put together anew when servers come or go.
@lru_cache(maxsize=128)
def _first_of(
    draft: Draft, taken: tuple[Share, ...] | None, grouped: bool, part: _Part
) -> Select[Any]:
    given = _lanes_given(draft, part)
    # By the group as well, which is but one: PostgreSQL would sort what has none.
    ids = eligible(draft, taken).order_by(entry.c.group_id, *in_order(entry)).limit(LIMIT)
    ids = ids.where(entry.c.group_id == given.c.group_id if grouped else entry.c.group_id.is_(None))
    if part.aged:
        before = bindparam("aged_before", type_=Instant)
        since = or_(entry.c.scheduled_at.is_(None), entry.c.scheduled_at <= before)
        old = and_(entry.c.created_at <= before, since)
        ids = ids.where(entry.c.priority == given.c.priority, old)
    if part.onward:
        begin = tuple_(given.c.created_at, given.c.id)
        behind = tuple_(entry.c.created_at, entry.c.id) >= begin
        ids = ids.where(entry.c.priority == given.c.priority, behind)
    if not draft.on_postgresql:
        # SQLite has no LATERAL; an IN list of its own for each lane is as good.
        return entry_rows(draft, given.join(work_queue, work_queue.c.id.in_(ids.correlate(given))))
    rows = walked_rows(draft, given, ids, entry)
    return rows.where(group_open()) if part.onward else rows


def _lanes_given(draft: Draft, part: _Part) -> Any:
    if draft.on_postgresql:
        named = work_queue.c
        begin = [named.created_at, named.id] if part.onward else []
        return unnest_of([named.group_id, named.priority, *begin])
    listed = func.json_each(bindparam("lanes", type_=JSON)).table_valued("value")
    return select(
        func.json_extract(listed.c.value, "$[0]").label("group_id"),
        func.json_extract(listed.c.value, "$[1]").label("priority"),
    ).subquery("given")


def _given(tx: Transaction, chosen: Sequence[Lane], part: _Part) -> dict[str, Any]:
    if not tx.on_postgresql:
        return {"lanes": [[lane.group_id, lane.priority] for lane in chosen]}
    begin = {
        "given_created_at": [lane.created_at for lane in chosen],
        "given_id": [lane.first_id for lane in chosen],
    }
    return {
        "given_group_id": [lane.group_id for lane in chosen],
        "given_priority": [lane.priority for lane in chosen],
        **(begin if part.onward else {}),
    }
