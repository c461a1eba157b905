"""What is remembered of the queue's front, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headway.domain.front import DEAR, LONGEST, WORTH, Front, begun_at
from headway.domain.lanes import Lane
from headway.domain.work_queue import Source, WorkQueueEntry

NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)
LANE = Lane(1, 5, NOON, 10, group_priority=3, cap=7)
DEAR_SECONDS = DEAR.total_seconds()


def an_entry(key: int, priority: int = 5, group_id: int | None = 1) -> WorkQueueEntry:
    queued_at = NOON + timedelta(seconds=key)
    return WorkQueueEntry(
        key, "work", Source.AD_HOC, priority, queued_at, None, group_id, None, None, 0, None
    )


def test_what_is_found_at_once_is_not_remembered() -> None:
    front = Front()
    front.keep([LANE], None, DEAR - timedelta(microseconds=1), 7, 0.0)
    assert not front.is_good(0.0)
    assert not front.lanes
    assert front.live_from == 0 and not front.looks_ahead


@pytest.mark.parametrize(
    ("took", "good_for"), [(DEAR, DEAR * WORTH), (timedelta(seconds=30), LONGEST)]
)
def test_what_was_dear_is_remembered_for_a_while(took: timedelta, good_for: timedelta) -> None:
    front = Front()
    front.keep([LANE], NOON, took, 7, 100.0)
    until = 100.0 + good_for.total_seconds()
    assert front.is_good(until - 0.001) and not front.is_good(until)
    assert front.next_at == NOON
    assert front.live_from == 7 and front.looks_ahead


def test_nobody_goes_on_from_no_lane_at_all() -> None:
    front = Front()
    front.keep([], None, LONGEST, 0, 0.0)
    assert not front.is_good(0.0)


def test_each_lane_begins_with_the_first_that_was_found_in_it() -> None:
    other, untouched = Lane(None, 5, NOON, 11), Lane(2, 5, NOON, 12)
    found = [an_entry(30), an_entry(20), an_entry(15, priority=4), an_entry(40, group_id=None)]
    first, second, third = begun_at([LANE, other, untouched], found)
    assert (first.created_at, first.first_id) == (an_entry(20).created_at, 20)
    assert (first.priority, first.group_priority, first.cap) == (5, 3, 7)
    assert second.first_id == 40
    assert third is untouched


def test_live_executions_are_counted_from_the_oldest_as_long_as_the_front_is_remembered() -> None:
    front = Front()
    front.count_from(90)
    assert front.live_from == 0
    front.keep([LANE], None, DEAR, 0, 0.0)
    front.count_from(90)
    assert front.live_from == 90
    front.keep([LANE], None, DEAR, 80, 1.0)
    assert front.live_from == 80
    front.forget()
    assert front.live_from == 0
    assert not front.is_good(1.0)


def test_where_nothing_lived_everything_is_counted() -> None:
    front = Front()
    front.keep([LANE], None, DEAR, None, 0.0)
    assert front.live_from == 0
    front.count_from(90)
    front.count_from(None)
    assert front.live_from == 90


def test_whoever_has_not_looked_yet_looks_ahead() -> None:
    assert Front().looks_ahead


def test_the_next_look_goes_on_where_the_last_one_began() -> None:
    front = Front()
    front.go_on([an_entry(20)])
    assert not front.lanes
    front.keep([LANE], None, DEAR, 0, 0.0)
    front.go_on([an_entry(20), an_entry(30)])
    assert [lane.first_id for lane in front.lanes] == [20]
    front.keep([LANE], NOON, timedelta(0), 0, 0.0)
    assert (front.lanes, front.next_at, front.looks_ahead) == ((), None, False)
