"""The first entries over many lanes are the true first ones, and little more is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.lanes import Lane, Search
from headway.domain.work_queue import Source, WorkQueueEntry, dispatch_order
from tests.builders import START

GROUP = st.tuples(
    st.integers(0, 3),
    st.none() | st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.booleans()), max_size=12),
)


class Queue:
    """Groups with a priority, a cap, and entries of which some may not run."""

    def __init__(self, groups: Sequence[tuple[int, int | None, list[tuple[int, int, bool]]]]):
        self.read = 0
        self.entries: dict[int, list[tuple[WorkQueueEntry, bool]]] = {}
        self.lanes: list[Lane] = []
        key = 0
        for group_id, (group_priority, room, rows) in enumerate(groups, 1):
            made = []
            for priority, age, runs in rows:
                key += 1
                made.append((entry(key, group_id, group_priority, priority, age), runs))
            made.sort(key=lambda one: dispatch_order(one[0]))
            self.entries[group_id] = made
            if made:
                first = made[0][0]
                self.lanes.append(
                    Lane(group_id, first.priority, first.created_at, first.id, group_priority, room)
                )
        self.lanes.sort(key=lambda lane: lane.order)

    def fetch(self, lanes: Sequence[Lane], limit: int) -> Mapping[Lane, list[WorkQueueEntry]]:
        found = {lane: self.able(lane.group_id or 0)[:limit] for lane in lanes}
        self.read += sum(map(len, found.values()))
        return found

    def able(self, group_id: int) -> list[WorkQueueEntry]:
        return [one for one, runs in self.entries[group_id] if runs]


def entry(key: int, group_id: int, group_priority: int, priority: int, age: int) -> WorkQueueEntry:
    return WorkQueueEntry(
        id=key,
        workflow="work",
        source=Source.TRIGGER,
        priority=priority,
        created_at=START - timedelta(seconds=age),
        manifest_id=key,
        group_id=group_id,
        external_id=None,
        group_name=None,
        group_priority=group_priority,
        group_max_active_jobs=None,
    )


def search(queue: Queue, wanted: int, per_group: int) -> Search:
    def most(lane: Lane) -> int:
        return per_group if lane.room is None else min(per_group, lane.room)

    return Search(queue.lanes, wanted, queue.fetch, dispatch_order, lambda lane: lane.order, most)


@given(st.lists(GROUP, max_size=8), st.integers(1, 20), st.integers(1, 12))
def test_what_is_found_is_what_reading_everything_would_find(
    groups: list[tuple[int, int | None, list[tuple[int, int, bool]]]], wanted: int, per_group: int
) -> None:
    queue = Queue(groups)
    expected = [
        one
        for lane in queue.lanes
        for one in queue.able(lane.group_id or 0)[: min(per_group, lane.room or per_group)]
    ]

    found = search(queue, wanted, per_group)

    assert found.run() == sorted(expected, key=dispatch_order)[:wanted]
    assert not {one.id for one in found.cut} & {one.id for one in expected}


def test_of_many_deep_lanes_little_is_read() -> None:
    queue = Queue([(0, None, [(0, 50 - place, True) for place in range(40)])] * 200)

    found = search(queue, 100, 100).run()

    assert len(found) == 100
    assert queue.read <= 300


@pytest.mark.parametrize(
    ("room", "waiting", "cut"),
    [(2, 4, [3]), (2, 3, [3]), (2, 2, []), (None, 4, []), (5, 6, [])],
)
def test_of_each_lane_the_first_that_only_the_cap_keeps_out_is_cut(
    room: int | None, waiting: int, cut: list[int]
) -> None:
    rows = [(0, 50 - place, True) for place in range(waiting)]
    found = search(Queue([(0, room, rows), (0, None, rows)]), 20, 4)
    assert len(found.run()) == min(waiting, 4, room or 4) + min(waiting, 4)
    assert [one.id for one in found.cut] == cut


def test_what_cannot_run_is_neither_found_nor_cut() -> None:
    rows = [(0, 50, True), (0, 49, False), (0, 48, True), (0, 47, False)]
    found = search(Queue([(0, 1, rows)]), 20, 4)
    assert [one.id for one in found.run()] == [1]
    assert [one.id for one in found.cut] == [3]


def test_a_lane_is_ordered_by_its_first_entry() -> None:
    lane = Lane(1, 5, START, 7, group_priority=9, room=1, cap=4)
    assert lane.order == (-9, -5, START, 7)
    assert lane.age == (START, 7)
    fullness = [replace(lane, room=room).full for room in (None, 1, 0, -1)]
    assert fullness == [False, False, True, True]
