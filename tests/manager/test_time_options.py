"""The options about time, as the real manager, dispatcher and runner keep to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from headway import Group, Item, RetryPolicy, cron, every, exclude, once
from headway.domain.execution import ExecutionState
from headway.domain.schedule import Schedule
from headway.store.tables import manifest
from tests.builders import Scene, reasons

MINUTE = timedelta(minutes=1)


def at(clock: str, day: int = 7) -> datetime:
    """A time on Monday, the 7th of January 2030, or another day of that month."""
    hour, minute, second = [*map(int, clock.split(":")), 0][:3]
    return datetime(2030, 1, day, hour, minute, second, tzinfo=UTC)


def declare(scene: Scene, schedule: Schedule, **options: Any) -> None:
    scene.app.schedule("work", "poll", None, schedule, **options)
    scene.apply()


def looked_at(scene: Scene, moment: datetime) -> str | None:
    """What the manager says about the manifest at this moment, if it looks at it."""
    scene.clock.now = moment
    return reasons(scene.manage()).get("poll")


def run(scene: Scene, moment: datetime) -> None:
    scene.clock.now = moment
    scene.cycle()


def ran_for(scene: Scene) -> list[str]:
    """The nominal times of the successful runs."""
    done = scene.ended(ExecutionState.COMPLETED)
    return [f"{one.scheduled_for:%H:%M}" for one in done if one.scheduled_for]


# Misfires


@pytest.mark.parametrize(
    ("moment", "queued", "reason"),
    [
        ("13:02", 0, "missed 2030-01-07 13:00:00 UTC by more"),
        ("13:00:30", 1, "due since"),
        ("13:01", 1, "due since"),
        ("13:01:01", 0, "missed"),
    ],
)
@pytest.mark.parametrize("schedule", [every(minutes=5), cron("*/5 * * * *")], ids=["every", "cron"])
def test_do_nothing_fires_only_within_the_threshold_after_a_boundary(
    scene: Scene, schedule: Schedule, moment: str, queued: int, reason: str
) -> None:
    scene.clock.now = at("10:00")
    declare(scene, schedule, misfire="do_nothing", misfire_threshold=timedelta(seconds=60))
    run(scene, at("10:00"))
    assert ran_for(scene) == ["10:00"]
    assert reason in str(looked_at(scene, at(moment)))
    assert [one.scheduled_for for one in scene.history.queue.all()] == [at("13:00")] * queued


def test_after_a_missed_time_the_next_one_runs(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    declare(scene, every(minutes=5), misfire="do_nothing")
    run(scene, at("10:00"))
    run(scene, at("13:02"))
    assert scene.manifest("poll").settled_until == at("13:00"), "missed times are settled"
    run(scene, at("13:05:10"))
    assert ran_for(scene) == ["10:00", "13:05"]


def test_fire_once_now_makes_up_for_many_with_one(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    declare(scene, cron("*/5 * * * *"))
    run(scene, at("10:00"))
    run(scene, at("13:02"))
    run(scene, at("13:03"))
    assert ran_for(scene) == ["10:00", "13:00"]


@pytest.mark.parametrize(
    ("schedule", "limit", "caught_up"),
    [
        (every(hours=1), 100, ["11:00", "12:00", "13:00"]),
        (cron("0 * * * *"), 100, ["11:00", "12:00", "13:00"]),
        (cron("0 * * * *"), 2, ["12:00", "13:00"]),
        (every(hours=1, fixed_rate=True), 1, ["13:00"]),
    ],
)
def test_catch_up_runs_each_missed_time_up_to_the_limit(
    scene: Scene, schedule: Schedule, limit: int, caught_up: list[str]
) -> None:
    scene.clock.now = at("10:00")
    declare(scene, schedule, misfire="catch_up", catch_up_limit=limit)
    run(scene, at("10:00"))
    for _ in range(5):
        run(scene, at("13:02"))
    assert ran_for(scene) == ["10:00", *caught_up]


# Fixed rate and first run


@pytest.mark.parametrize(
    ("schedule", "second", "third"),
    [(every(hours=1), "11:20", "12:20"), (every(hours=1, fixed_rate=True), "11:00", "12:00")],
    ids=["from the last success", "fixed rate"],
)
def test_a_fixed_rate_counts_from_when_a_run_was_due(
    scene: Scene, schedule: Schedule, second: str, third: str
) -> None:
    scene.clock.now = at("10:00")
    declare(scene, schedule)
    scene.manage()
    scene.dispatch()
    run(scene, at("10:20"))
    scene.manage()
    assert scene.manifest("poll").wake_at == at(second)
    run(scene, at(second))
    scene.manage()
    assert scene.manifest("poll").wake_at == at(third)


@pytest.mark.parametrize("schedule", [every(hours=1), cron("0 * * * *")], ids=["every", "cron"])
def test_the_first_run_may_wait_for_the_first_occurrence(scene: Scene, schedule: Schedule) -> None:
    scene.clock.now = at("10:00")
    declare(scene, schedule, first_run="at_first_occurrence")
    assert looked_at(scene, at("10:00")) == "not due before 2030-01-07 11:00:00 UTC"
    run(scene, at("11:00"))
    assert ran_for(scene) == ["11:00"]


def test_a_redeployment_does_not_put_the_first_occurrence_off(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    declare(scene, every(hours=1), first_run="at_first_occurrence")
    scene.clock.now = at("10:50")
    scene.new_app()
    scene.app.schedule("work", "another")
    declare(scene, every(hours=1), first_run="at_first_occurrence", max_retries=7)
    assert looked_at(scene, at("11:00")) is not None
    assert scene.history.queue.all()[0].scheduled_for == at("11:00")


# Variance


def test_jitter_is_stable_across_looks_and_redeployments(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    options = {"variance": timedelta(minutes=10)}
    declare(scene, every(hours=1), **options)
    assert scene.manage().queued == 0, "the first run is spread as well"
    first = scene.manifest("poll").wake_at
    assert first is not None and at("10:00") < first < at("10:10")
    run(scene, first)
    scene.manage()
    due = scene.manifest("poll").wake_at
    assert due is not None and first + 60 * MINUTE <= due <= first + 70 * MINUTE
    for number in range(3):
        scene.new_app(worker_count=number + 1)
        scene.app.schedule("work", f"another-{number}")
        declare(scene, every(hours=1), **options, max_retries=number)
        scene.wake("poll")
        scene.manage()
        assert scene.manifest("poll").wake_at == due
    run(scene, due)
    assert len(scene.ended(ExecutionState.COMPLETED)) == 2


# Exclusions


@pytest.mark.parametrize(
    ("then", "runs"), [("skip", ["10:00", "14:00"]), ("defer", ["10:00", "13:00", "14:00"])]
)
def test_an_excluded_time_is_skipped_or_deferred(scene: Scene, then: str, runs: list[str]) -> None:
    scene.clock.now = at("10:00")
    window = exclude.window("11:00", "13:30", then=then)
    declare(scene, cron("0 * * * *"), exclude=[window])
    for moment in ("10:00", "11:00", "12:00", "13:00", "13:30", "14:00"):
        run(scene, at(moment))
    assert ran_for(scene) == runs


def test_skipped_times_are_settled_and_do_not_come_back(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    declare(scene, cron("0 * * * *"), exclude=[exclude.window("10:30", "12:30")])
    run(scene, at("10:00"))
    assert looked_at(scene, at("10:00")) == "not due before 2030-01-07 13:00:00 UTC"
    assert looked_at(scene, at("12:15")) is None, "nothing to look at before the next free time"
    scene.wake("poll")
    assert looked_at(scene, at("12:45")) == "not due before 2030-01-07 13:00:00 UTC"
    assert scene.manifest("poll").settled_until == at("12:00")
    run(scene, at("13:00"))
    assert ran_for(scene) == ["10:00", "13:00"]


def test_exclusions_are_read_on_the_manifests_own_clock(scene: Scene) -> None:
    """07:00 UTC is 16:00 in Tokyo: inside the window there, outside it here."""
    scene.clock.now = at("06:00")
    window = exclude.window("15:30", "16:30")
    declare(scene, every(hours=1), exclude=[window], tz="Asia/Tokyo")
    run(scene, at("06:00"))
    assert looked_at(scene, at("07:00")) == "not due before 2030-01-07 08:00:00 UTC"
    run(scene, at("08:00"))
    assert ran_for(scene) == ["06:00", "08:00"]


# Retries and single runs


def test_a_manifest_has_its_own_retry_policy(scene: Scene) -> None:
    scene.failing = {"poll"}
    scene.clock.now = at("10:00")
    declare(scene, every(hours=1), retry=RetryPolicy(MINUTE, 3.0, 5 * MINUTE), max_retries=5)
    waits = []
    for _ in range(4):
        scene.cycle()
        scene.manage()
        [entry] = scene.history.queue.all()
        assert entry.scheduled_at is not None
        waits.append(entry.scheduled_at - scene.clock.now)
        scene.clock.now = entry.scheduled_at
    assert waits == [1 * MINUTE, 3 * MINUTE, 5 * MINUTE, 5 * MINUTE]


def test_a_once_manifest_with_a_new_time_runs_again(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    scene.app.schedule_once("work", "poll", None, once(at("11:00")))
    scene.apply()
    run(scene, at("10:30"))
    run(scene, at("11:00"))
    assert not scene.manifest("poll").enabled
    scene.new_app().schedule_once("work", "poll", None, once(at("12:00")))
    scene.apply()
    assert scene.manifest("poll").enabled
    run(scene, at("11:30"))
    run(scene, at("12:00"))
    assert ran_for(scene) == ["11:00", "12:00"]


def test_another_kind_of_schedule_leaves_nothing_of_the_last_behind(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    declare(scene, every(hours=1), variance=10 * MINUTE, misfire="do_nothing")
    run(scene, at("10:10"))
    scene.new_app()
    declare(scene, cron("0 * * * *"))
    run(scene, at("13:25"))
    assert ran_for(scene)[-1] == "13:00", "at once, unspread, however late"


@pytest.mark.parametrize("then", ["skip", "defer"])
def test_what_was_queued_before_an_exclusion_does_not_start_inside_it(
    scene: Scene, then: str
) -> None:
    scene.clock.now = at("21:58")
    night = exclude.window("22:00", "06:00", then=then)
    declare(scene, cron("59 * * * *"), exclude=[night], first_run="at_first_occurrence")
    assert "due since" in str(looked_at(scene, at("21:59")))
    scene.clock.now = at("22:01")
    result = scene.dispatch()
    assert result.dispatched == ()
    assert result.due_in == timedelta(hours=7, minutes=59), "it is known when to look again"
    [waiting] = scene.history.queue.all()
    assert waiting.scheduled_at == at("06:00", day=8)
    scene.clock.now = at("06:00", day=8)
    assert len(scene.dispatch().dispatched) == 1
    scene.run()
    assert ran_for(scene) == ["21:59"]


def test_an_exclusion_at_dispatch_is_read_on_the_manifests_own_clock(scene: Scene) -> None:
    scene.clock.now = at("20:58")
    night = exclude.window("22:00", "06:00")
    declare(scene, every(minutes=1), exclude=[night], tz="Europe/Berlin")
    assert looked_at(scene, at("20:59")) == "first run"
    scene.clock.now = at("21:00")  # 22:00 in Berlin
    assert scene.dispatch().dispatched == ()
    assert scene.history.queue.all()[0].scheduled_at == at("05:00", day=8)


def test_a_retry_does_not_start_inside_an_exclusion(scene: Scene) -> None:
    scene.clock.now = at("21:58")
    scene.failing = {"poll"}
    options: dict[str, Any] = {"exclude": [exclude.window("22:00", "06:00")]}
    declare(scene, cron("58 * * * *"), retry=RetryPolicy(5 * MINUTE, 1.0, 5 * MINUTE), **options)
    run(scene, at("21:58"))
    scene.failing = set()
    scene.manage()
    assert scene.history.queue.all()[0].scheduled_at == at("22:03")
    run(scene, at("22:03"))
    assert ran_for(scene) == []
    run(scene, at("06:00", day=8))
    assert ran_for(scene) == ["21:58"]


def test_what_a_person_asks_for_starts_inside_an_exclusion(scene: Scene) -> None:
    scene.clock.now = at("21:00")
    declare(scene, cron("0 12 * * *"), exclude=[exclude.window("22:00", "06:00")])
    run(scene, at("21:00"))
    scene.clock.now = at("23:00")
    scene.trigger("poll")
    assert len(scene.dispatch().dispatched) == 1


def test_entries_at_rest_hide_none_that_can_run(scene: Scene) -> None:
    """More of them than a page holds, and before the other in every order."""
    scene.configure(max_queued_jobs_per_cycle=None)
    scene.clock.now = at("21:59")
    night, first = exclude.window("22:00", "06:00"), Group("late", priority=9)
    items = [Item(number) for number in range(1100)]
    noon = cron("0 12 * * *")
    scene.app.schedule_many("work", "late", items, noon, exclude=[night], group=first)
    scene.apply()
    while scene.manage().queued:
        pass
    scene.app.schedule("work", "awake", None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.clock.now = at("22:00")
    [execution_id] = scene.dispatch().dispatched
    assert scene.execution(execution_id).external_id == "awake"


def test_exclusions_that_cannot_be_read_put_the_entry_off(scene: Scene) -> None:
    scene.clock.now = at("10:00")
    declare(scene, every(hours=1))
    scene.manage()
    with scene.store.writing() as tx:
        tx.connection.execute(update(manifest).values(exclusions="[{}]"))
    assert scene.dispatch().dispatched == ()
    assert scene.history.queue.all()[0].scheduled_at == at("11:00")


def test_do_nothing_does_not_swallow_the_retry_of_a_long_run(scene: Scene) -> None:
    """The run began in time; that it failed an hour later does not make it a missed one."""
    scene.clock.now = at("10:00")
    declare(scene, cron("0 */3 * * *"), misfire="do_nothing", first_run="at_first_occurrence")
    scene.failing = {"poll"}
    looked_at(scene, at("12:00"))
    scene.dispatch()
    scene.clock.now = at("13:00")
    scene.run()
    scene.failing = set()
    assert "retry 1" in str(looked_at(scene, at("13:00")))
    run(scene, at("14:00"))
    assert ran_for(scene) == ["12:00"]
