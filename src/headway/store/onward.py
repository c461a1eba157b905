"""A look at the queue that goes on where the last one began, as long as that fills a page."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import bindparam, func, select

from headway.domain.front import Front
from headway.domain.lanes import Lane, Search
from headway.domain.routing import Share
from headway.domain.work_queue import WorkQueueEntry, dispatch_order, one_per_manifest
from headway.store.lane_entries import onward_from
from headway.store.tables import execution
from headway.store.transaction import Transaction

_LIVE = (
    select(execution.c.group_id, func.count().label("active"))
    .where(execution.c.id >= bindparam("live_from"), execution.c.group_id.is_not(None))
    .group_by(execution.c.group_id)
)


def look_onward(
    tx: Transaction,
    front: Front,
    live_from: int,
    per_group: int | None,
    wanted: int,
    taken: Sequence[Share] | None,
) -> list[WorkQueueEntry]:
    """Up to *wanted* entries of the lanes that *front* remembers, best first; fewer mean nothing:
    there may be more elsewhere. No live execution has an id below *live_from*."""
    if not front.lanes:
        return []
    lanes = _with_room(tx, front, live_from)
    most = wanted if per_group is None else per_group
    search = Search(
        sorted((lane for lane in lanes if not lane.full), key=lambda lane: lane.order),
        wanted,
        partial(onward_from, tx, taken),
        dispatch_order,
        lambda lane: lane.order,
        lambda lane: most if lane.room is None else min(most, lane.room),
    )
    found = one_per_manifest(search.run())
    front.go_on(found)
    return found


def _with_room(tx: Transaction, front: Front, live_from: int) -> list[Lane]:
    """The lanes with what the caps of their groups leave free at this moment."""
    if all(lane.cap is None for lane in front.lanes):
        return list(front.lanes)
    rows = tx.ask(_LIVE, {"live_from": live_from})
    active = {group_id: count for group_id, count in rows}
    return [
        lane if lane.cap is None else replace(lane, room=lane.cap - active.get(lane.group_id, 0))
        for lane in front.lanes
    ]
