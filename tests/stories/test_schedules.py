"""Stories of schedules whose servers die, disagree about the time, or start all at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from headway import every
from headway.definition.runtime import Runtime
from headway.domain.execution import ExecutionState
from headway.errors import StepFailed
from headway.store import engine, outcomes, work_queue
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import OWNER, START, Scene, eventually
from tests.scenarios.fleet import Fleet, manage, work
from tests.scenarios.occurrences import Job, Ledger
from tests.stories.servers import COMPLETED


def declare(scene: Scene, seconds: int) -> None:
    scene.app.schedule(
        "work",
        "tick",
        None,
        every(seconds=seconds, fixed_rate=True),
        first_run="at_first_occurrence",
        misfire="catch_up",
    )
    scene.apply()


def run_what_is_queued(scene: Scene) -> None:
    if scene.dispatch().dispatched:
        claimed = scene.claim()
        with scene.store.writing() as tx:
            outcomes.finish(tx, OWNER, {one.id: COMPLETED for one in claimed})


def ticks(scene: Scene) -> list[int]:
    """The occurrences there were, in seconds from the start, in the order in which they ran."""
    ran = scene.ended(ExecutionState.COMPLETED)
    moments = [one.scheduled_for for one in ran if one.scheduled_for is not None]
    assert len(moments) == len(ran)
    return [round((moment - START).total_seconds()) for moment in moments]


@pytest.mark.story(6)
def test_a_leader_replaced_more_often_than_the_interval_misses_no_tick(scene: Scene) -> None:
    """Every three seconds for two minutes; each cycle is that of a leader who knows nothing."""
    declare(scene, seconds=10)
    for _ in range(40):
        scene.clock.advance(seconds=3)
        scene.manage()
        run_what_is_queued(scene)

    assert ticks(scene) == list(range(10, 121, 10))


class Killed(Exception):
    """The end of a leader in the middle of its cycle."""


@pytest.mark.story(20)
def test_a_leader_killed_around_every_tick_costs_none(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty times: one dies the second before, one in the middle of queueing it."""

    def die(*_arguments: Any) -> None:
        raise Killed

    def die_while_queueing() -> None:
        with monkeypatch.context() as dying:
            dying.setattr(work_queue, "enqueue", die)
            with pytest.raises(StepFailed) as ended:
                scene.manage()
        assert isinstance(ended.value.__cause__, Killed)

    declare(scene, seconds=60)
    for _ in range(50):
        scene.clock.advance(seconds=59)
        scene.manage()
        scene.clock.advance(seconds=1)
        die_while_queueing()
        assert scene.history.queue.all() == []
        scene.manage()
        run_what_is_queued(scene)

    assert ticks(scene) == list(range(60, 3001, 60))


@pytest.mark.story(33)
def test_what_was_cancelled_does_not_start_after_a_restart_of_everything(scene: Scene) -> None:
    declare_hourly(scene)
    scene.configure(max_active_jobs=2)
    scene.manage()
    scene.dispatch()
    [running] = scene.claim(1)
    runtime = Runtime("tests", scene.app.registry, scene.store)
    for name in HOURLY:
        runtime.cancelling.cancel(name, None, None, None, "not today")
    scene.store.close()

    with Scene(scene.url) as again:
        declare_hourly(again)
        with again.store.writing() as tx:
            outcomes.end_orphans(tx, 3)
        for _ in range(3):
            again.cycle()

        assert again.history.queue.all() == []
        left = again.history.executions.all()
        assert {one.state for one in left} == {ExecutionState.CANCELLED}
        assert running.id in {one.id for one in left}


HOURLY = ("first", "second", "third")


def declare_hourly(scene: Scene) -> None:
    for name in HOURLY:
        scene.app.schedule("work", name, None, every(hours=1))
    scene.apply()


@pytest.fixture
def fleet(postgres_url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(postgres_url, tmp_path)
    yield fleet
    fleet.close()


def an_hour_ahead(url: str, log: Path) -> None:
    """A manager on a machine whose clock is an hour fast."""
    skew(timedelta(hours=1))
    manage(url, log)


def an_hour_behind(url: str, log: Path) -> None:
    skew(timedelta(hours=-1))
    manage(url, log)


def stepping(url: str, log: Path) -> None:
    """One whose clock jumps a minute back and forth whenever it is looked at."""
    steps = iter(range(10**9))
    skew(timedelta(minutes=1), lambda: 1 - 2 * (next(steps) % 2))
    manage(url, log)


def skew(by: timedelta, factor: Callable[[], int] = lambda: 1) -> None:
    """Put every clock that code of this process can ask wrong, but the one that only counts."""
    tell = time.time

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.fromtimestamp(time.time(), tz or UTC)

    time.time = lambda: tell() + by.total_seconds() * factor()
    engine.datetime = Wrong  # type: ignore[attr-defined]


@pytest.mark.story(28)
def test_managers_whose_clocks_are_wrong_queue_what_a_lone_right_one_would(
    fleet: Fleet, postgres_url: str
) -> None:
    store = Store(postgres_url)
    migrate(store)
    fleet.start(work)
    for role in (an_hour_ahead, an_hour_behind, stepping, manage):
        fleet.start(role)
    ledger = Ledger(store, [Job("clock", 1, True), Job("rate", 2, False)], seconds=4)
    eventually(lambda: ledger.now() > ledger.until and ledger.unfinished() == 0)

    assert ledger.entries() == ledger.expected
    store.close()
