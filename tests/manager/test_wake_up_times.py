"""When the manager looks at a manifest again, and that each cycle is all or nothing, by one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from headway import Group, cron, every, once
from headway.domain.execution import ExecutionState
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.tables import manifest
from tests.builders import START, Scene, names, reasons


def declare(scene: Scene, schedule: Any, **options: Any) -> None:
    scene.app.schedule("work", "load-users", None, schedule, **options)
    scene.apply()


def run_times(scene: Scene, hours: int, step: timedelta = timedelta(minutes=10)) -> list[datetime]:
    """When load-users ran, as the clock goes on in small steps."""
    until = scene.clock.now + timedelta(hours=hours)
    while scene.clock.now < until:
        scene.cycle()
        scene.clock.now += step
    ran = scene.history.executions.all("load-users", states=[ExecutionState.COMPLETED])
    return [one.started_at for one in ran if one.started_at]


def test_an_interval_runs_at_once_and_then_every_time_it_has_passed(scene: Scene) -> None:
    declare(scene, every(hours=1))

    assert run_times(scene, hours=3) == [START + timedelta(hours=hour) for hour in range(3)]
    assert scene.manifest("load-users").wake_at == START + timedelta(hours=3)


def test_a_cron_schedule_runs_at_its_times(scene: Scene) -> None:
    declare(scene, cron("30 13,14 * * *"))

    ran = run_times(scene, hours=6)

    assert ran == [START, *(datetime(2030, 1, 7, hour, 30, tzinfo=UTC) for hour in (13, 14))]
    assert scene.manifest("load-users").wake_at == datetime(2030, 1, 8, 13, 30, tzinfo=UTC)


def test_once_runs_once_and_is_switched_off(scene: Scene) -> None:
    declare(scene, once(START + timedelta(hours=2)))
    assert reasons(scene.manage()) == {"load-users": "not due before 2030-01-07 14:00:00 UTC"}
    assert scene.manifest("load-users").wake_at == START + timedelta(hours=2)

    assert run_times(scene, hours=6) == [START + timedelta(hours=2)]
    done = scene.manifest("load-users")
    assert (done.enabled, done.wake_at) == (False, None)


def test_once_that_fails_is_tried_again(scene: Scene) -> None:
    declare(scene, once(START))
    scene.failing.add("load-users")
    scene.cycle()
    scene.failing.clear()
    scene.manage()
    scene.clock.advance(minutes=5)
    scene.dispatch()
    scene.run()

    states = [one.state for one in scene.history.executions.all()]
    assert states == [ExecutionState.FAILED, ExecutionState.COMPLETED]


def test_without_a_schedule_nothing_is_ever_due_by_time(scene: Scene) -> None:
    scene.app.schedule("work", "load-users")
    scene.apply()

    assert reasons(scene.manage()) == {"load-users": "has no further occurrence by time"}
    assert scene.manifest("load-users").wake_at is None


def test_the_cycle_says_when_the_next_one_is_due(scene: Scene) -> None:
    declare(scene, every(hours=1))
    scene.cycle()
    scene.clock.advance(minutes=20)

    assert scene.manage().due_in == timedelta(minutes=40)


def test_only_manifests_whose_time_has_come_are_looked_at(scene: Scene) -> None:
    declare(scene, every(hours=1))
    scene.cycle()
    scene.manage()

    assert scene.manage().candidates == 0
    scene.clock.advance(hours=1)
    assert scene.manage().candidates == 1


def test_a_queued_and_then_running_manifest_sleeps_until_its_run_ends(scene: Scene) -> None:
    declare(scene, every(hours=1))
    scene.manage()
    assert scene.manifest("load-users").wake_at is None
    scene.dispatch()
    scene.claim()
    scene.clock.advance(minutes=2)
    assert scene.manage().candidates == 0, "held: nobody reads it again and again"

    scene.clock.advance(hours=2)
    scene.manage()
    assert len(scene.ended(ExecutionState.FAILED)) == 1, "the stale reaper ended it"
    assert names(scene.history.queue.all()) == ["load-users"], "and the end woke its manifest"


def test_a_finished_run_wakes_its_manifest(scene: Scene) -> None:
    declare(scene, every(hours=1))
    scene.cycle()

    result = scene.manage()

    assert reasons(result) == {"load-users": "not due before 2030-01-07 13:00:00 UTC"}
    assert scene.manifest("load-users").wake_at == START + timedelta(hours=1)


def test_a_group_enabled_by_a_changed_declaration_wakes_its_manifests(scene: Scene) -> None:
    declare(scene, every(hours=1), group=Group("users", enabled=False))
    scene.manage()
    assert scene.manifest("load-users").wake_at is None
    scene.clock.advance(days=1)
    assert scene.manage().candidates == 0

    scene.new_app()
    declare(scene, every(hours=1), group=Group("users"))

    assert reasons(scene.manage()) == {"load-users": "first run"}
    assert names(scene.history.queue.all()) == ["load-users"]


def test_a_manifest_enabled_by_a_changed_declaration_is_woken(scene: Scene) -> None:
    declare(scene, every(hours=1), enabled=False)
    assert reasons(scene.manage()) == {"load-users": "the manifest is disabled"}
    assert scene.manifest("load-users").wake_at is None

    scene.new_app()
    declare(scene, every(hours=1))

    assert scene.manage().queued == 1


def test_a_changed_schedule_counts_at_once(scene: Scene) -> None:
    declare(scene, every(days=30))
    scene.cycle()
    scene.manage()
    scene.clock.advance(hours=2)

    scene.new_app()
    declare(scene, every(hours=1))

    assert scene.manage().queued == 1


def test_a_row_that_cannot_be_read_is_looked_at_again_after_an_hour(scene: Scene) -> None:
    """Whoever corrects the row in the database leaves no wake-up."""
    declare(scene, cron("0 * * * *"))
    change_row(scene, cron_expression="not cron")
    [reason] = reasons(scene.manage()).values()
    assert reason.startswith("its row cannot be read: ")
    assert scene.manage().candidates == 0, "not in every cycle"

    change_row(scene, cron_expression="0 * * * *")
    scene.clock.advance(hours=1)

    assert scene.manage().queued == 1


def change_row(scene: Scene, **values: Any) -> None:
    with scene.store.writing() as tx:
        tx.connection.execute(update(manifest).values(**values))


def test_a_manifest_no_longer_declared_sleeps_for_good(scene: Scene) -> None:
    scene.app.schedule("work", "other")
    declare(scene, every(hours=1))
    scene.manage()
    scene.new_app()
    scene.app.schedule("work", "other")
    scene.apply()
    scene.clock.advance(days=1)

    assert scene.history.queue.all() == []
    assert (scene.manage().queued, scene.manage().candidates) == (0, 0)


def test_a_cycle_that_fails_rolls_back_wholly(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(scene, every(hours=1), max_retries=1)
    scene.app.schedule("work", "other", None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()
    scene.clock.advance(minutes=21)
    before = (scene.history.executions.all(), scene.history.manifests.all())

    def break_down(*arguments: object) -> None:
        raise ConnectionError("the cable is out")

    with monkeypatch.context() as broken:
        broken.setattr(work_queue, "enqueue", break_down)
        with pytest.raises(Exception) as failed:
            scene.manage()
    assert isinstance(failed.value.__cause__, ConnectionError)
    assert (scene.history.executions.all(), scene.history.manifests.all()) == before
    assert scene.history.dead_letters.awaiting() == []

    healed = scene.manage()
    assert (healed.reaped_pending, healed.dead_lettered, healed.queued) == (2, 1, 1)


def test_a_second_leader_does_nothing(postgres_url: str) -> None:
    with Scene(postgres_url) as scene:
        declare(scene, every(hours=1))
        second = Store(postgres_url, clock=scene.clock)
        with scene.store.leading(Lock.MANAGE) as leader:
            assert leader is not None
            result = scene.manage(second)
        assert (result.led, result.candidates, result.decisions) == (False, 0, ())
        assert scene.history.queue.all() == []

        assert scene.manage(second).queued == 1
        assert scene.manage().queued == 0
        second.close()
