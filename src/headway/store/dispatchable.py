"""What the dispatcher may start now, best first: read lane by lane, as far as it takes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    LargeBinary,
    Select,
    and_,
    any_,
    bindparam,
    case,
    cast,
    exists,
    func,
    not_,
    or_,
    select,
    true,
)

from headway.domain.lanes import Lane, Search
from headway.domain.routing import Share
from headway.domain.work_queue import (
    RestingTimes,
    Source,
    WorkQueueEntry,
    age,
    dispatch_order,
    one_per_manifest,
)
from headway.store.eligibility import SCHEDULED, eligible, entry, in_order
from headway.store.lanes import lanes
from headway.store.rows import unnested
from headway.store.tables import manifest, manifest_group, work_queue
from headway.store.transaction import Transaction

AGED_SHARE = 10


def dispatchable(
    tx: Transaction,
    per_group: int | None,
    in_total: int,
    excluded: Collection[str] = (),
    taken: Sequence[Share] | None = None,
    aged_before: datetime | None = None,
) -> list[WorkQueueEntry]:
    """The entries that may be dispatched now, best first, at most *per_group* of each group.

    Everything that would refuse an entry is asked before any limit, so that a page full of
    entries that cannot run never hides one that can: of a capped group come as many as it has
    room for and one more, and what is *excluded* from the global limit comes whatever its place.
    With *taken*, only entries in these shares come: nobody is there to run the others. The oldest
    of those that might have run since *aged_before* come as well.
    """
    look = _Look(tx, per_group, in_total, taken, aged_before)
    found = look.best_of(look.heads, excluded) if excluded else []
    found += look.oldest()
    found += sorted(look.best() + look.unripe(), key=dispatch_order)
    chosen = one_per_manifest(found)[:in_total]
    chosen += look.kept_out(in_total - len(chosen))
    return sorted(one_per_manifest(chosen), key=dispatch_order)


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
        self.heads, self._aged = lanes(tx, 2 * in_total, aged_before, 2 * self._aged_wanted)
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
            self.heads, _ = lanes(self._tx, None, None, None)
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
            _, self._aged = lanes(self._tx, 0, self._aged_before, None)
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
        waiting = eligible(self._tx, self._taken, waiting=True)
        disabled = exists().where(
            manifest_group.c.id == entry.c.group_id, not_(manifest_group.c.enabled)
        )
        ids = waiting.where(~disabled).order_by(entry.c.scheduled_at).limit(self._wanted)
        key = work_queue.c.id
        # As an array, because a join with them would be planned to read the whole queue.
        on_postgresql = self._tx.on_postgresql
        chosen = key == any_(func.array(ids.scalar_subquery())) if on_postgresql else key.in_(ids)
        statement = _entries(self._tx, work_queue).where(chosen)
        return [_entry(row) for row in self._tx.connection.execute(statement)]

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
                statement = _first_of(self._tx, taken, some, limit, grouped, aged_before)
                for row in self._tx.connection.execute(statement):
                    one = _entry(row)
                    found[by_place[_place(one, aged_before)]].append(one)
        for entries in found.values():
            entries.sort(key=dispatch_order)
        return found


def _place(one: Lane | WorkQueueEntry, aged_before: datetime | None) -> tuple[int | None, ...]:
    """What tells lanes apart: the group, and the priority where it is about age."""
    return (one.group_id,) if aged_before is None else (one.group_id, one.priority)


def _first_of(
    tx: Transaction,
    taken: Sequence[Share] | None,
    chosen: Sequence[Lane],
    limit: int,
    grouped: bool,
    aged_before: datetime | None,
) -> Select[Any]:
    """The first entries of each of these lanes that may run: a walk down each, up to *limit*."""
    given = _given(tx, chosen)
    ids = eligible(tx, taken).order_by(*in_order(entry)).limit(limit)
    ids = ids.where(entry.c.group_id == given.c.group_id if grouped else entry.c.group_id.is_(None))
    if aged_before is not None:
        since = or_(entry.c.scheduled_at.is_(None), entry.c.scheduled_at <= aged_before)
        old = and_(entry.c.created_at <= aged_before, since)
        ids = ids.where(entry.c.priority == given.c.priority, old)
    if not tx.on_postgresql:
        # SQLite has no LATERAL; an IN list of its own for each lane is as good.
        return _entries(tx, given.join(work_queue, work_queue.c.id.in_(ids.correlate(given))))
    best = ids.lateral("best")
    walked = given.join(best, true()).join(work_queue, work_queue.c.id == best.c.id)
    return _entries(tx, walked)


def _given(tx: Transaction, chosen: Sequence[Lane]) -> Any:
    if tx.on_postgresql:
        columns = [work_queue.c.group_id, work_queue.c.priority]
        return unnested(columns, [(lane.group_id, lane.priority) for lane in chosen])
    pairs = [[lane.group_id, lane.priority] for lane in chosen]
    listed = func.json_each(bindparam(None, pairs, type_=JSON)).table_valued("value")
    return select(
        func.json_extract(listed.c.value, "$[0]").label("group_id"),
        func.json_extract(listed.c.value, "$[1]").label("priority"),
    ).subquery("given")


def _entries(tx: Transaction, source: Any) -> Select[Any]:
    return select(
        work_queue.c.id,
        work_queue.c.workflow,
        work_queue.c.source,
        work_queue.c.priority,
        work_queue.c.created_at,
        work_queue.c.scheduled_at,
        work_queue.c.manifest_id,
        work_queue.c.group_id,
        _input_bytes(tx).label("input_bytes"),
        case((SCHEDULED, manifest.c.exclusions)).label("exclusions"),
        manifest.c.time_zone,
        manifest.c.external_id,
        manifest.c.allow_overlap,
        manifest.c.id.label("found_manifest"),
        manifest_group.c.id.label("found_group"),
        manifest_group.c.name.label("group_name"),
        manifest_group.c.priority.label("group_priority"),
        manifest_group.c.max_active_jobs.label("group_max_active_jobs"),
        manifest_group.c.last_shut_at,
    ).select_from(
        source.outerjoin(manifest, manifest.c.id == work_queue.c.manifest_id).outerjoin(
            manifest_group, manifest_group.c.id == work_queue.c.group_id
        )
    )


def _input_bytes(tx: Transaction) -> ColumnElement[int]:
    if tx.on_postgresql:
        return func.octet_length(work_queue.c.input)
    return func.length(cast(work_queue.c.input, LargeBinary))


def _entry(row: Any) -> WorkQueueEntry:
    moments = (row.created_at, row.scheduled_at, row.last_shut_at)
    return WorkQueueEntry(
        id=row.id,
        workflow=row.workflow,
        source=Source(row.source),
        priority=row.priority,
        created_at=row.created_at,
        manifest_id=row.manifest_id,
        group_id=row.group_id,
        external_id=row.external_id,
        group_name=row.group_name,
        group_priority=row.group_priority or 0,
        group_max_active_jobs=row.group_max_active_jobs,
        resting=RestingTimes(row.exclusions, row.time_zone or "UTC") if row.exclusions else None,
        eligible_since=max(moment for moment in moments if moment is not None),
        input_bytes=row.input_bytes,
        missing=_missing(row),
        may_overlap=bool(row.allow_overlap),
    )


def _missing(row: Any) -> str | None:
    """What the entry belongs to although it does not exist: a row somebody edited."""
    if row.manifest_id is not None and row.found_manifest is None:
        return f"manifest {row.manifest_id}"
    if row.group_id is not None and row.found_group is None:
        return f"group {row.group_id}"
    if row.manifest_id is not None and row.group_id is None:
        return "group"
    return None
