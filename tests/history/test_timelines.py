"""What a timeline shows between two moments."""

from __future__ import annotations

import pytest

from headway.domain.work_queue import Source
from headway.history import (
    History,
    Timeline,
)
from headway.store import executions
from headway.store.engine import Store
from headway.store.reading import timeline
from tests.store.factories import (
    ME,
    Clock,
    dispatched,
    finish,
    ran,
    started,
)


def test_a_timeline_has_what_touches_its_bounds(
    family: Store, history: History, clock: Clock
) -> None:
    early = started(family, "stray")
    start = clock.advance(minutes=10)
    finish(family, early)
    inside = started(family, "stray")
    end = clock.advance(minutes=10)
    finish(family, inside)
    after = started(family, "stray")
    pending = dispatched(family, "extract")
    for group in (None, "extracts"):
        line = history.executions.timeline(start, end, group)
        assert [one.id for one in line.executions] == [early.id, inside.id]
        assert (line.start, line.end, line.truncated) == (start, end, False)
    clock.advance(seconds=1)
    line = history.executions.timeline(start, clock.now, "extracts")
    assert [one.id for one in line.executions] == [early.id, inside.id, after.id]
    assert pending not in {one.id for one in line.executions}
    missing = history.executions.timeline(start, end, "nobody's")
    assert missing == Timeline(start, end, (), truncated=False)


def test_live_runs_have_their_place_in_a_timeline_of_too_much(
    family: Store, history: History, clock: Clock
) -> None:
    start = clock.now
    ended = ran(family, "load", source=Source.DEPENDENT)
    clock.advance(minutes=1)
    live = [started(family, name) for name in ("extract", "stray")]
    end = clock.advance(minutes=1)
    line = history.executions.timeline(start, end, limit=3)
    assert ([one.id for one in line.executions], line.truncated) == (
        [ended.id, live[0].id, live[1].id],
        False,
    )
    line = history.executions.timeline(start, end, limit=2)
    assert ([one.id for one in line.executions], line.truncated) == (
        [live[0].id, live[1].id],
        True,
    )


def test_what_was_looked_at_and_began_too_early_truncates_nothing(
    family: Store, history: History, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "EXAMINED", 1)
    ran(family, "load", source=Source.DEPENDENT)
    start = clock.advance(minutes=1)
    inside = [ran(family, "load", source=Source.DEPENDENT).id for _ in range(2)]
    end = clock.advance(minutes=1)
    line = history.executions.timeline(start, end, "loads", limit=2)
    assert ([one.id for one in line.executions], line.truncated) == (inside, False)
    assert history.executions.timeline(start, end, "loads", limit=1).truncated


def test_runs_come_by_their_start_and_not_by_their_dispatch(
    family: Store, history: History, clock: Clock
) -> None:
    start = clock.now
    waited = dispatched(family, "extract")
    clock.advance(minutes=1)
    first = started(family, "stray")
    clock.advance(minutes=1)
    with family.writing() as tx:
        executions.claim_one(tx, ME, waited)
    end = clock.advance(minutes=1)
    line = history.executions.timeline(start, end)
    assert [one.id for one in line.executions] == [first.id, waited]


def test_of_too_much_with_what_went_on_after_the_end_the_newest_is_shown(
    family: Store, history: History, clock: Clock
) -> None:
    start = clock.now
    ended = ran(family, "load", source=Source.DEPENDENT)
    long = started(family, "stray")
    end = clock.advance(minutes=1)
    clock.advance(minutes=1)
    finish(family, long)
    line = history.executions.timeline(start, end, limit=1)
    assert [one.id for one in line.executions] == [long.id]
    both = history.executions.timeline(start, end, limit=2)
    assert [one.id for one in both.executions] == [ended.id, long.id]
    own = history.executions.timeline(start, end, "loads")
    assert [one.id for one in own.executions] == [ended.id]


def test_of_too_much_nothing_is_left_out_since_the_oldest_that_is_shown(
    family: Store, history: History, clock: Clock
) -> None:
    start = clock.now
    for _ in range(2):
        clock.advance(minutes=1)
        newest = ran(family, "load", source=Source.DEPENDENT)
    live = started(family, "stray")
    end = clock.advance(minutes=1)
    line = history.executions.timeline(start, end, limit=2)
    assert [one.id for one in line.executions] == [newest.id, live.id]
    assert (line.start, line.truncated) == (newest.finished_at, True)


def test_a_deployment_that_has_ended_nothing_began_with_what_lives(
    family: Store, history: History, clock: Clock
) -> None:
    clock.advance(minutes=1)
    first = started(family, "stray")
    clock.advance(minutes=1)
    dispatched(family, "extract")
    assert history.executions.began() == first.dispatched_at


def test_what_came_much_later_is_not_looked_at_for_one_group(
    family: Store, history: History, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "EXAMINED", 1)
    start = clock.now
    inside = ran(family, "load", source=Source.DEPENDENT)
    end = clock.advance(minutes=1)
    clock.advance(minutes=5)
    for _ in range(5):
        ran(family, "load", source=Source.DEPENDENT)
    line = history.executions.timeline(start, end, "loads", limit=2)
    assert ([one.id for one in line.executions], line.truncated) == ([inside.id], False)
