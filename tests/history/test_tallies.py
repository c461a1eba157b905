"""Charts and totals are what counting the history itself would say, at any moment."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select

from headway.config import Settings
from headway.domain.manifest import Group
from headway.domain.spans import DAY, HOUR, MINUTE, floored
from headway.history import History, Retention, Tallying
from headway.observe import Observer
from headway.store import retention, tallies
from headway.store.engine import Store
from headway.store.tables import execution_history, tally
from tests.store.factories import FAILED, Clock, a_manifest, declare, ran

STATES = ("completed", "completed", "completed", "failed", "cancelled", "handed_back")
GROUPS = 3


def remember(store: Store, runs: list[dict[str, Any]]) -> None:
    """Put finished runs into the history."""
    with store.writing() as tx:
        start = tx.connection.execute(select(func.max(execution_history.c.id))).scalar() or 0
        rows = [
            {
                "id": start + number,
                "entry_id": start + number,
                "manifest_id": 1,
                "external_id": "extract",
                "group_name": "etl",
                "workflow": "work",
                "input_type": "None",
                "input": "null",
                "source": "schedule",
                "priority": 0,
                "queued_at": run["finished_at"],
                "dispatched_at": run["finished_at"],
                "attempt": 1,
                "max_attempts": 1,
                "dispatch_attempts": 0,
                "crashes": 0,
                "failure_type": "ValueError" if run["state"] == "failed" else None,
                **run,
            }
            for number, run in enumerate(runs, 1)
        ]
        if rows:
            tx.connection.execute(insert(execution_history), rows)


def some_runs(rng: random.Random, ids: list[int | None], start: datetime, span: timedelta) -> Any:
    for _ in range(rng.randrange(40)):
        finished_at = start + span * rng.random()
        ran = None if rng.random() < 0.1 else finished_at - timedelta(seconds=rng.randrange(90))
        yield {
            "state": rng.choice(STATES),
            "group_id": rng.choice(ids),
            "started_at": ran,
            "finished_at": finished_at,
        }


def count_all(store: Store) -> None:
    while Tallying(store).run_once():
        pass


def runs_since(store: Store, since: datetime) -> list[Any]:
    with store.reading() as tx:
        rows = tx.connection.execute(select(execution_history)).all()
    return [row for row in rows if row.finished_at >= since and row.state != "handed_back"]


def seconds_of(runs: list[Any]) -> float:
    spans = (run.finished_at - run.started_at for run in runs if run.started_at)
    return float(sum(span.total_seconds() for span in spans))


@pytest.mark.parametrize("seed", range(3))
def test_charts_and_totals_equal_a_direct_count(
    store: Store, history: History, clock: Clock, seed: int
) -> None:
    rng = random.Random(seed)
    groups = [Group(f"group-{number}") for number in range(GROUPS)]
    declare(store, *(a_manifest(one.name, group=one) for one in groups), groups=groups)
    ids: list[int | None] = [history.groups.detail(one.name).id for one in groups]
    for _ in range(12):
        span = timedelta(minutes=rng.choice([1, 7, 90, 700]))
        remember(store, list(some_runs(rng, [*ids, None], clock.now, span)))
        clock.now += span
        if rng.random() < 0.7:
            count_all(store)
        check_charts(store, history, clock.now)
        check_groups(store, history, clock.now)


def check_charts(store: Store, history: History, now: datetime) -> None:
    for span, step in ((HOUR, MINUTE), (7 * DAY, HOUR)):
        chart = history.overview.throughput(span)
        points = chart.points
        assert chart.step == step
        assert [one.start for one in points] == [
            floored(now, step) - back * step for back in reversed(range(span // step))
        ]
        direct = Counter(
            (floored(run.finished_at, step), run.state)
            for run in runs_since(store, points[0].start)
        )
        shown = {
            (one.start, state): getattr(one, state)
            for one in points
            for state in ("completed", "failed", "cancelled")
        }
        assert {key: number for key, number in shown.items() if number} == dict(direct)
        took = seconds_of(runs_since(store, points[0].start))
        assert sum(one.run_seconds for one in points) == pytest.approx(took)


def check_groups(store: Store, history: History, now: datetime) -> None:
    runs = runs_since(store, floored(now - DAY, HOUR))
    for shown in history.groups.all():
        group_id = history.groups.detail(shown.name).id
        own = [run for run in runs if run.group_id == group_id]
        states = Counter(run.state for run in own)
        assert shown.completed == states["completed"]
        assert shown.failed == states["failed"]
        assert shown.cancelled == states["cancelled"]
        assert shown.run_seconds == pytest.approx(seconds_of(own))


def test_what_is_counted_is_read_from_the_tallies_alone(
    store: Store, history: History, clock: Clock
) -> None:
    declare(store, "extract")
    ran(store)
    ran(store, outcome=FAILED)
    clock.advance(minutes=5)
    count_all(store)
    with store.writing() as tx:
        tx.connection.execute(delete(execution_history))
    [group] = history.groups.page().items
    assert (group.completed, group.failed) == (1, 1)
    assert sum(one.completed for one in history.overview.throughput(HOUR).points) == 1
    assert history.overview.summary().success_rate == 0.5


def test_a_minute_counts_only_when_nobody_can_still_write_into_it(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract")
    ran(store)
    clock.advance(seconds=100)
    with store.reading() as tx:
        assert not tallies.more_to_count(tx)
    clock.advance(minutes=2)
    assert not Tallying(store).run_once(), "one minute, and nothing more to do"
    with store.reading() as tx:
        assert not tallies.more_to_count(tx)
        spans = tx.connection.execute(select(tally.c.span).order_by(tally.c.span)).scalars().all()
    assert spans == ["hour", "hour", "minute", "until"]


def test_counting_twice_at_once_counts_once(store: Store, history: History, clock: Clock) -> None:
    declare(store, "extract")
    ran(store)
    clock.advance(minutes=5)
    for _ in range(2):
        with store.writing() as tx:
            tallies.count_more(tx)
    [group] = history.groups.page().items
    assert group.completed == 1


def test_a_long_history_is_counted_an_hour_at_a_time(store: Store, clock: Clock) -> None:
    hours = [clock.advance(hours=1) for _ in range(5)]
    remember(store, [{"state": "completed", "finished_at": one} for one in hours])
    clock.advance(days=1)
    passes = 1
    while Tallying(store).run_once():
        passes += 1
    assert passes == 1 + len(hours), "and what lies between is passed by"


def test_old_tallies_are_deleted_a_batch_at_a_time_the_oldest_first(
    store: Store, clock: Clock
) -> None:
    hours = [clock.advance(hours=1) for _ in range(3)]
    remember(store, [{"state": "completed", "finished_at": one} for one in hours])
    clock.advance(hours=1)
    count_all(store)
    with store.writing() as tx:
        assert retention.delete_old_tallies(tx, hours[1], 10) == 2, "its minute and its hour"
        assert [retention.delete_old_tallies(tx, clock.now, 1) for _ in range(5)] == [1, 1, 1, 1, 0]


def test_old_tallies_are_deleted_but_not_the_line(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    ran(store)
    clock.advance(minutes=5)
    count_all(store)
    clock.advance(days=9)
    cleaner = Retention(store, Settings(), Observer())
    while cleaner.run_once().more:
        pass
    with store.reading() as tx:
        assert tx.connection.execute(select(tally.c.span)).scalars().all() == ["until"]
