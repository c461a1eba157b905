"""What the dispatcher may start now, best first: read lane by lane, as far as it takes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple

from sqlalchemy import (
    JSON,
    Integer,
    Select,
    and_,
    bindparam,
    exists,
    func,
    not_,
    or_,
    select,
)

from headway.domain.lanes import Lane, Search
from headway.domain.routing import Share
from headway.domain.work_queue import (
    WorkQueueEntry,
    age,
    dispatch_order,
    one_per_manifest,
)
from headway.store.eligibility import eligible, entry, in_order
from headway.store.entry_rows import entry_rows, to_entry, walked_rows
from headway.store.lanes import lanes
from headway.store.rows import unnest_of
from headway.store.tables import manifest_group, work_queue
from headway.store.transaction import Draft, Transaction, among_found, draft_for
from headway.store.types import Instant

AGED_SHARE = 10
LIMIT = bindparam("limit", type_=Integer)


def dispatchable(
    tx: Transaction,
    per_group: int | None,
    in_total: int,
    excluded: Collection[str] = (),
    taken: Sequence[Share] | None = None,
    aged_before: datetime | None = None,
) -> list[WorkQueueEntry]:
    """The entries that may be dispatched now, as :func:`look` finds them."""
    return look(tx, per_group, in_total, excluded, taken, aged_before).entries


class Found(NamedTuple):
    """What one look has found, best first, and when the first of what counts as delayed is due."""

    entries: list[WorkQueueEntry]
    next_at: datetime | None


def look(
    tx: Transaction,
    per_group: int | None,
    in_total: int,
    excluded: Collection[str] = (),
    taken: Sequence[Share] | None = None,
    aged_before: datetime | None = None,
) -> Found:
    """The entries that may be dispatched now, best first, at most *per_group* of each group.

    Everything that would refuse an entry is asked before any limit, so that a page full of
    entries that cannot run never hides one that can: of a capped group come as many as it has
    room for and one more, and what is *excluded* from the global limit comes whatever its place.
    With *taken*, only entries in these shares come: nobody is there to run the others. The oldest
    of those that might have run since *aged_before* come as well.
    """
    one = _Look(tx, per_group, in_total, taken, aged_before)
    found = one.best_of(one.heads, excluded) if excluded else []
    found += one.oldest()
    found += sorted(one.best() + one.unripe(), key=dispatch_order)
    chosen = one_per_manifest(found)[:in_total]
    chosen += one.kept_out(in_total - len(chosen))
    return Found(sorted(one_per_manifest(chosen), key=dispatch_order), one.next_at)


def _limited_to(workflows: frozenset[str], taken: Sequence[Share] | None) -> Sequence[Share]:
    if taken is None:
        return [Share(workflows)]
    return [replace(share, workflows=share.workflows & workflows) for share in taken]


class _Look:
    """One look at the queue: the lanes as they are now, and what may run of each."""

    def __init__(
        self,
        tx: Transaction,
        per_group: int | None,
        in_total: int,
        taken: Sequence[Share] | None,
        aged_before: datetime | None,
    ) -> None:
        self._tx = tx
        self._per_group = in_total if per_group is None else per_group
        self._wanted = in_total
        self._taken = taken
        self._aged_before = aged_before
        self._cut: list[WorkQueueEntry] = []
        found = lanes(tx, 2 * in_total, aged_before, 2 * self._aged_wanted)
        self.heads, self._aged, self.next_at = found
        self._all_heads = len(self.heads) < 2 * in_total
        self._all_aged = len(self._aged) < 2 * self._aged_wanted

    @property
    def _aged_wanted(self) -> int:
        return max(1, self._wanted // AGED_SHARE)

    def best(self) -> list[WorkQueueEntry]:
        """The first in the order of dispatch, of all groups that have room."""
        found = self.best_of(self.heads)
        if len(found) < self._wanted and not self._all_heads:
            # So many groups whose entries cannot run hide nobody either.
            self.heads = lanes(self._tx, None, None, None).heads
            self._all_heads = True
            found = self.best_of(self.heads)
        return found

    def best_of(
        self, heads: Sequence[Lane], excluded: Collection[str] | None = None
    ) -> list[WorkQueueEntry]:
        """The first in the order of dispatch of these lanes; with *excluded*, of those alone."""
        taken = self._taken
        if excluded is not None:
            taken = _limited_to(frozenset(excluded), taken)
        search = Search(
            [lane for lane in heads if not lane.full],
            self._wanted,
            partial(self._fetch, taken),
            dispatch_order,
            lambda lane: lane.order,
            lambda lane: self._per_group if lane.room is None else min(self._per_group, lane.room),
        )
        found = search.run()
        self._cut += search.cut
        return found

    def oldest(self) -> list[WorkQueueEntry]:
        """The oldest that might have run all the time since then."""
        found = self._oldest_of(self._aged)
        if len(found) < self._aged_wanted and not self._all_aged:
            self._aged = lanes(self._tx, 0, self._aged_before, None).aged
            self._all_aged = True
            found = self._oldest_of(self._aged)
        return found

    def _oldest_of(self, aged: Sequence[Lane]) -> list[WorkQueueEntry]:
        search = Search(
            aged,
            self._aged_wanted,
            partial(self._fetch, self._taken, aged_before=self._aged_before),
            age,
            lambda lane: lane.age,
            lambda lane: self._aged_wanted if lane.room is None else lane.room,
        )
        return search.run()

    def unripe(self) -> list[WorkQueueEntry]:
        """What is due although it still counts as delayed; the dispatcher clears most of it."""
        if self.next_at is None or self.next_at > self._tx.now:
            return []
        statement = _unripe(draft_for(self._tx), _hashable(self._taken))
        asked = {"now": self._tx.now, "limit": self._wanted}
        return [to_entry(row) for row in self._tx.connection.execute(statement, asked).all()]

    def kept_out(self, room: int) -> list[WorkQueueEntry]:
        """What only the caps of groups keep out, one of each: somebody will ask why."""
        full = [lane for lane in self.heads if lane.full][: max(0, room - len(self._cut))]
        firsts = self._fetch(self._taken, full, 1) if full else {}
        return (self._cut + [one for entries in firsts.values() for one in entries])[: max(0, room)]

    def _fetch(
        self,
        taken: Sequence[Share] | None,
        chosen: Sequence[Lane],
        limit: int,
        aged_before: datetime | None = None,
    ) -> Mapping[Lane, list[WorkQueueEntry]]:
        by_place = {_place(lane, aged_before): lane for lane in chosen}
        found: dict[Lane, list[WorkQueueEntry]] = {lane: [] for lane in chosen}
        for grouped in (True, False):
            some = [lane for lane in chosen if (lane.group_id is not None) is grouped]
            if some:
                statement = _first_of(
                    draft_for(self._tx), _hashable(taken), grouped, aged_before is not None
                )
                asked = {"now": self._tx.now, "limit": limit, **_given(self._tx, some)}
                if aged_before is not None:
                    asked["aged_before"] = aged_before
                for row in self._tx.connection.execute(statement, asked).all():
                    one = to_entry(row)
                    found[by_place[_place(one, aged_before)]].append(one)
        for entries in found.values():
            entries.sort(key=dispatch_order)
        return found


def _place(one: Lane | WorkQueueEntry, aged_before: datetime | None) -> tuple[int | None, ...]:
    """What tells lanes apart: the group, and the priority where it is about age."""
    return (one.group_id,) if aged_before is None else (one.group_id, one.priority)


def _hashable(taken: Sequence[Share] | None) -> tuple[Share, ...] | None:
    return None if taken is None else tuple(taken)


# As many as there are ways to route; each is put together anew when servers come or go.
@lru_cache(maxsize=32)
def _unripe(draft: Draft, taken: tuple[Share, ...] | None) -> Select[Any]:
    waiting = eligible(draft, taken, waiting=True)
    disabled = exists().where(
        manifest_group.c.id == entry.c.group_id, not_(manifest_group.c.enabled)
    )
    ids = waiting.where(~disabled).order_by(entry.c.scheduled_at).limit(LIMIT)
    return entry_rows(draft, work_queue).where(among_found(draft, work_queue.c.id, ids))


@lru_cache(maxsize=128)
def _first_of(
    draft: Draft, taken: tuple[Share, ...] | None, grouped: bool, aged: bool
) -> Select[Any]:
    """The first entries of each of the lanes given that may run: a walk down each, up to a limit.

    With *aged*, of those that are older than ``aged_before``.
    """
    given = _lanes_given(draft)
    # By the group as well, which is but one: PostgreSQL would sort what has none.
    ids = eligible(draft, taken).order_by(entry.c.group_id, *in_order(entry)).limit(LIMIT)
    ids = ids.where(entry.c.group_id == given.c.group_id if grouped else entry.c.group_id.is_(None))
    if aged:
        before = bindparam("aged_before", type_=Instant)
        since = or_(entry.c.scheduled_at.is_(None), entry.c.scheduled_at <= before)
        old = and_(entry.c.created_at <= before, since)
        ids = ids.where(entry.c.priority == given.c.priority, old)
    if not draft.on_postgresql:
        # SQLite has no LATERAL; an IN list of its own for each lane is as good.
        return entry_rows(draft, given.join(work_queue, work_queue.c.id.in_(ids.correlate(given))))
    return walked_rows(draft, given, ids, entry)


def _lanes_given(draft: Draft) -> Any:
    if draft.on_postgresql:
        return unnest_of([work_queue.c.group_id, work_queue.c.priority])
    listed = func.json_each(bindparam("lanes", type_=JSON)).table_valued("value")
    return select(
        func.json_extract(listed.c.value, "$[0]").label("group_id"),
        func.json_extract(listed.c.value, "$[1]").label("priority"),
    ).subquery("given")


def _given(tx: Transaction, chosen: Sequence[Lane]) -> dict[str, Any]:
    if not tx.on_postgresql:
        return {"lanes": [[lane.group_id, lane.priority] for lane in chosen]}
    return {
        "given_group_id": [lane.group_id for lane in chosen],
        "given_priority": [lane.priority for lane in chosen],
    }
