"""What the dispatcher may start now, best first: read lane by lane, as far as it takes."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import (
    Select,
    exists,
    not_,
)

from headway.domain.lanes import Lane, Search
from headway.domain.routing import Share
from headway.domain.work_queue import (
    WorkQueueEntry,
    age,
    dispatch_order,
    one_per_manifest,
)
from headway.store.eligibility import eligible, entry
from headway.store.entry_rows import entry_rows, to_entry
from headway.store.lane_entries import LIMIT, first_of_lanes
from headway.store.lanes import lanes
from headway.store.tables import manifest_group, work_queue
from headway.store.transaction import Draft, Transaction, among_found, draft_for

AGED_SHARE = 10


def dispatchable(
    tx: Transaction,
    per_group: int | None,
    in_total: int,
    excluded: Collection[str] = (),
    taken: Sequence[Share] | None = None,
    aged_before: datetime | None = None,
) -> list[WorkQueueEntry]:
    """The entries that may be dispatched now, as a :class:`Look` finds them."""
    return Look(tx, per_group, in_total, taken, aged_before).entries(excluded)


def _limited_to(workflows: frozenset[str], taken: Sequence[Share] | None) -> Sequence[Share]:
    if taken is None:
        return [Share(workflows)]
    return [replace(share, workflows=share.workflows & workflows) for share in taken]


class Look:
    """One look at the queue: the lanes as they are now, and what may run of each.

    At most *per_group* entries of each group come. With *taken*, only entries in these shares do:
    nobody is there to run the others. The oldest of those that might have run since *aged_before*
    come as well. No live execution has an id below *live_from*.

    ``heads`` are the best lanes of groups, which PostgreSQL ``took`` so long to find; the first of
    what counts as delayed is due at ``next_at``.
    """

    def __init__(
        self,
        tx: Transaction,
        per_group: int | None,
        in_total: int,
        taken: Sequence[Share] | None,
        aged_before: datetime | None,
        live_from: int = 0,
    ) -> None:
        self._tx = tx
        self._per_group = in_total if per_group is None else per_group
        self._wanted = in_total
        self._taken = taken
        self._aged_before = aged_before
        self._cut: list[WorkQueueEntry] = []
        self._live_from = live_from
        found = lanes(tx, 2 * in_total, aged_before, 2 * self._aged_wanted, live_from)
        self.heads, self._aged, self.next_at, self.took, self._in_all = found
        self._all_heads = len(self.heads) < 2 * in_total
        self._all_aged = len(self._aged) < 2 * self._aged_wanted

    @property
    def every_head(self) -> Sequence[Lane]:
        """The best lane of each group; of none if they were not all read."""
        return self.heads if self._all_heads else ()

    @property
    def is_plain(self) -> bool:
        """Whether every group has one lane and no cap: then its first lane is all there is of it,
        and none is kept out."""
        alone = self._all_heads and self._in_all == len(self.heads)
        return alone and all(lane.cap is None for lane in self.heads)

    @property
    def hurries(self) -> bool:
        """Whether something goes ahead of its lane: it has waited for too long, or was delayed."""
        return bool(self._aged) or self._is_ripe()

    def entries(self, excluded: Collection[str] = ()) -> list[WorkQueueEntry]:
        """The entries that may be dispatched now, best first.

        Everything that would refuse an entry is asked before any limit, so that a page full of
        entries that cannot run never hides one that can: of a capped group come as many as it has
        room for and one more, and what is *excluded* from the global limit comes whatever its
        place.
        """
        ahead = self.best_of(self.heads, excluded) if excluded else []
        ahead += self.oldest()
        best, unripe = self.best(), self.unripe()
        if unripe:
            best = sorted(best + unripe, key=dispatch_order)
        entries = one_per_manifest(ahead + best)[: self._wanted]
        kept_out = self.kept_out(self._wanted - len(entries))
        if ahead or kept_out:
            entries = sorted(one_per_manifest(entries + kept_out), key=dispatch_order)
        return entries

    def _is_ripe(self) -> bool:
        return self.next_at is not None and self.next_at <= self._tx.now

    @property
    def _aged_wanted(self) -> int:
        return max(1, self._wanted // AGED_SHARE)

    def best(self) -> list[WorkQueueEntry]:
        """The first in the order of dispatch, of all groups that have room."""
        found = self.best_of(self.heads)
        if len(found) < self._wanted and not self._all_heads:
            # So many groups whose entries cannot run hide nobody either.
            self.heads = lanes(self._tx, None, None, None, self._live_from).heads
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
            partial(first_of_lanes, self._tx, taken),
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
            self._aged = lanes(self._tx, 0, self._aged_before, None, self._live_from).aged
            self._all_aged = True
            found = self._oldest_of(self._aged)
        return found

    def _oldest_of(self, aged: Sequence[Lane]) -> list[WorkQueueEntry]:
        search = Search(
            aged,
            self._aged_wanted,
            partial(first_of_lanes, self._tx, self._taken, aged_before=self._aged_before),
            age,
            lambda lane: lane.age,
            lambda lane: self._aged_wanted if lane.room is None else lane.room,
        )
        return search.run()

    def unripe(self) -> list[WorkQueueEntry]:
        """What is due although it still counts as delayed; the dispatcher clears most of it."""
        if not self._is_ripe():
            return []
        statement = _unripe(draft_for(self._tx), _hashable(self._taken))
        asked = {"now": self._tx.now, "limit": self._wanted}
        return [to_entry(row) for row in self._tx.ask(statement, asked)]

    def kept_out(self, room: int) -> list[WorkQueueEntry]:
        """What only the caps of groups keep out, one of each: somebody will ask why."""
        full = [lane for lane in self.heads if lane.full][: max(0, room - len(self._cut))]
        firsts = first_of_lanes(self._tx, self._taken, full, 1) if full else {}
        return (self._cut + [one for entries in firsts.values() for one in entries])[: max(0, room)]


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
