"""headway.testing: the real scheduler on a throw-away database, in virtual time."""

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headway import Group, Headway, HeadwayError, Run, cron, every, once
from headway.domain.execution import Execution, ExecutionState
from headway.domain.schedule import Schedule
from headway.errors import InputError, ManifestNotFound
from headway.manager import chunk
from headway.store.engine import Store
from headway.testing import NeverIdle, Sandbox, VirtualClock

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
HOURLY = pytest.mark.parametrize(
    "schedule", [every(hours=1), cron("0 * * * *")], ids=["interval", "cron"]
)


def test_nothing_due_is_left_behind_a_chunk_of_which_nothing_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunk, "LARGEST", 2)
    hw = Headway("tests")

    @hw.workflow
    def extract(table: str) -> None: ...

    for number in range(6):
        hw.schedule(extract, f"off-{number}", "users", every(hours=1), enabled=False, group="etl")
    hw.schedule(extract, "on", "users", every(hours=1), group="etl")
    with Sandbox(hw) as box:
        box.run_until_idle()
        assert [one.external_id for one in box.executions()] == ["on"]


def app(schedule: Schedule, **options: Any) -> Headway:
    hw = Headway("tests")

    @hw.workflow
    def extract(table: str) -> None: ...

    hw.schedule(extract, "extract-users", "users", schedule, **options)
    return hw


def failing(**settings: Any) -> Headway:
    hw = Headway("tests", **settings)

    @hw.workflow
    def load(table: str) -> None:
        raise ValueError(f"no table {table}")

    hw.schedule(load, "load-users", "users", every(days=1))
    return hw


def after_start(executions: list[Execution]) -> list[timedelta]:
    return [one.dispatched_at - MONDAY for one in executions]


@HOURLY
def test_an_hourly_manifest_runs_168_times_in_a_virtual_week(schedule: Schedule) -> None:
    with Sandbox(app(schedule), start=MONDAY) as box:
        box.run_until_idle()
        assert len(box.executions("extract-users")) == 1
        box.advance(days=7)
        ran = box.executions("extract-users")
    assert box.now == MONDAY + timedelta(days=7)
    assert {one.state for one in ran} == {ExecutionState.COMPLETED}
    assert after_start(ran) == [timedelta(hours=hour) for hour in range(1 + 168)]


@HOURLY
def test_a_virtual_day_is_the_same_on_postgresql(schedule: Schedule, postgres_url: str) -> None:
    with Sandbox(app(schedule), start=MONDAY, database_url=postgres_url) as box:
        box.run_until_idle()
        assert len(box.executions("extract-users")) == 1
        box.advance(days=1)
        ran = box.executions("extract-users")
    assert after_start(ran) == [timedelta(hours=hour) for hour in range(1 + 24)]


def test_a_virtual_clock_works_with_any_store(database_url: str) -> None:
    clock = VirtualClock(MONDAY)
    store = Store(database_url, clock=clock)
    clock.move_to(MONDAY + timedelta(hours=3))
    with store.reading() as tx:
        assert tx.now == datetime(2026, 1, 5, 3, tzinfo=UTC)
    store.close()


def test_the_clock_refuses_to_go_back_and_times_without_a_zone() -> None:
    clock = VirtualClock(MONDAY)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.move_to(MONDAY - timedelta(seconds=1))
    with pytest.raises(ValueError, match="no time zone"):
        clock.move_to(datetime(2027, 1, 1))


def test_nothing_waits_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the sandbox waited for real")

    really_wait = threading.Condition.wait

    def wait(condition: threading.Condition, timeout: float | None = None) -> bool:
        """For a thread that starts, yes; for time to pass, no."""
        if timeout is not None:
            refuse()
        return really_wait(condition)

    with Sandbox(app(every(hours=1)), start=MONDAY) as box:
        monkeypatch.setattr(time, "sleep", refuse)
        monkeypatch.setattr(asyncio, "sleep", refuse)
        monkeypatch.setattr(threading.Condition, "wait", wait)
        box.advance(days=1)
        monkeypatch.undo()
        assert len(box.executions()) == 1 + 24


def test_retries_wait_longer_each_time_and_end_in_a_dead_letter() -> None:
    with Sandbox(failing(), start=MONDAY) as box:
        box.advance(days=2)
        ran = box.executions("load-users")
        letters = box.dead_letters()
        assert box.last("load-users") == ran[-1]
        assert box.why(execution=ran[0].id).execution == ran[0].id
        assert "dead letter" in str(box.why("load-users"))
    assert after_start(ran) == [timedelta(minutes=minutes) for minutes in (0, 5, 5 + 10)]
    assert [one.attempt for one in ran] == [1, 2, 3]
    assert {one.state for one in ran} == {ExecutionState.FAILED}
    assert ran[0].failure is not None
    assert ran[0].failure.summary == "load: ValueError: no table users"
    assert [letter.dead_lettered_at for letter in letters] == [MONDAY + timedelta(minutes=15)]
    assert letters[0].manifest_id == ran[0].manifest_id


def test_a_retry_waits_in_the_queue_until_its_time() -> None:
    with Sandbox(failing(), start=MONDAY) as box:
        box.run_until_idle()
        assert [entry.scheduled_at for entry in box.queued()] == [MONDAY + timedelta(minutes=5)]
        box.advance(minutes=4, seconds=59)
        assert len(box.executions()) == 1
        box.advance(seconds=1)
        assert len(box.executions()) == 2


def test_time_passes_by_all_that_is_named() -> None:
    with Sandbox(Headway("tests"), start=MONDAY) as box:
        box.advance(timedelta(hours=5), weeks=1, days=2, hours=3, minutes=4, seconds=6)
        assert box.now == MONDAY + timedelta(days=9, hours=8, minutes=4, seconds=6)


def test_the_limit_of_what_may_wait_holds_in_a_sandbox_too() -> None:
    with Sandbox(Headway("tests", max_queued_per_group=2), start=MONDAY) as box:
        box.app.workflow("load")(lambda: None)
        operator = box.app.operator("alice")
        for _ in range(2):
            operator.enqueue("load")
        with pytest.raises(HeadwayError, match="max_queued_per_group"):
            operator.enqueue("load")


def test_who_never_rests_without_a_run_is_told_so() -> None:
    told = "at 2026-01-05 00:00:00 UTC the sandbox did not come to rest; busiest: nothing ran"
    assert str(NeverIdle(MONDAY, Counter())) == told


def test_once_fires_exactly_at_its_time_and_is_disabled_after() -> None:
    at = MONDAY + timedelta(hours=9, minutes=30)
    with Sandbox(app(once(at)), start=MONDAY) as box:
        box.advance_to(at - timedelta(seconds=1))
        with pytest.raises(HeadwayError, match=r"'extract-users' has not run yet; it is .* 09:29"):
            box.last("extract-users")
        assert [one.enabled for one in box.manifests()] == [True]
        box.advance_to(at)
        ran = box.last("extract-users")
        assert (ran.dispatched_at, ran.scheduled_for) == (at, at)
        assert [one.enabled for one in box.manifests()] == [False]
        box.advance(weeks=4)
        assert box.executions("extract-users") == [ran]


def test_a_disabled_group_queues_nothing() -> None:
    hw = app(every(hours=1), group=Group("etl", enabled=False))
    with Sandbox(hw, start=MONDAY) as box:
        box.advance(days=1)
        assert (box.executions(), box.queued()) == ([], [])
    assert box.now == MONDAY + timedelta(days=1)


def test_more_manifests_than_slots_all_run_at_the_same_instant() -> None:
    hw = Headway("tests", max_active_jobs=2, max_work_queue_entries_per_cycle=5)

    @hw.workflow
    def extract(table: int) -> None: ...

    for number in range(13):
        hw.schedule(extract, f"extract-{number}", number, every(hours=1), group="etl")
    with Sandbox(hw, start=MONDAY) as box:
        box.run_until_idle()
        assert sorted(int(one.input) for one in box.executions()) == list(range(13))
        assert {one.dispatched_at for one in box.executions()} == {MONDAY}


def test_sync_and_async_steps_and_the_run_are_what_they_are_in_production() -> None:
    hw = Headway("tests")
    seen: list[tuple[list[int], Run]] = []

    def read(count: int) -> list[int]:
        return list(range(count))

    async def write(rows: list[int], run: Run) -> None:
        await asyncio.sleep(0)
        seen.append((rows, run))

    hw.schedule(hw.workflow("copy", steps=(read, write)), "copy-users", 3, every(hours=1))
    with Sandbox(hw, start=MONDAY) as box:
        box.advance(hours=1)
    assert [rows for rows, _ in seen] == [[0, 1, 2], [0, 1, 2]]
    assert [run.scheduled_for for _, run in seen] == [MONDAY, MONDAY + timedelta(hours=1)]
    assert seen[0][1].fencing_token < seen[1][1].fencing_token


def test_an_ad_hoc_run_is_queued_with_checked_input() -> None:
    hw = app(once(MONDAY + timedelta(days=1)))
    with Sandbox(hw, start=MONDAY) as box:
        box.enqueue("extract", "orders")
        assert [entry.input for entry in box.queued()] == ['"orders"']
        box.run_until_idle()
        assert [(one.external_id, one.input) for one in box.executions()] == [(None, '"orders"')]
        with pytest.raises(InputError):
            box.enqueue("extract", 7)


def test_a_set_that_never_rests_is_named() -> None:
    hw = failing(default_retry_delay=0, default_max_retries=1000)
    with (
        Sandbox(hw, start=MONDAY, max_runs_at_once=5) as box,
        pytest.raises(NeverIdle, match=r"2026-01-05 00:00:00 UTC .* load-users \(6 runs\)"),
    ):
        box.run_until_idle()


def test_any_number_of_ad_hoc_runs_comes_to_rest() -> None:
    """Those queued before, and those a job queues."""
    hw = app(once(MONDAY + timedelta(days=1)))

    @hw.workflow
    def fan_out(count: int) -> None:
        for _ in range(count):
            box.enqueue("extract", "users")

    with Sandbox(hw, start=MONDAY, max_runs_at_once=5) as box:
        for _ in range(25):
            box.enqueue("extract", "users")
        box.enqueue(fan_out, 25)
        box.run_until_idle()
        assert len(box.executions()) == 25 + 1 + 25


def test_an_ad_hoc_run_that_queues_itself_never_rests() -> None:
    hw = Headway("tests")

    @hw.workflow
    def again() -> None:
        box.enqueue("again")

    with Sandbox(hw, start=MONDAY, max_runs_at_once=5) as box:
        box.enqueue("again")
        with pytest.raises(NeverIdle, match=r"busiest: again \(6 runs\)"):
            box.run_until_idle()


@pytest.mark.parametrize(
    "use",
    [
        Sandbox.run_until_idle,
        lambda box: box.advance(hours=1),
        lambda box: box.enqueue("extract", "users"),
        lambda box: box.last("extract-users"),
        Sandbox.executions,
        Sandbox.queued,
        Sandbox.manifests,
        Sandbox.dead_letters,
        lambda box: box.store,
        lambda box: box.runtime,
    ],
)
def test_outside_its_with_a_sandbox_says_so(use: Callable[[Sandbox], object]) -> None:
    box = Sandbox(app(every(hours=1)))
    with pytest.raises(HeadwayError, match=r"with Sandbox\(hw\) as box:"):
        use(box)
    with box:
        pass
    with pytest.raises(HeadwayError, match=r"with Sandbox\(hw\) as box:"):
        use(box)


def test_what_is_not_an_application_or_a_time_is_refused() -> None:
    wrong: Any = 5
    with pytest.raises(HeadwayError, match=r"^Sandbox\(5\): takes your Headway"):
        Sandbox(wrong)
    with pytest.raises(HeadwayError, match=r"^5 is not a moment"):
        Sandbox(app(every(hours=1)), start=wrong)
    with Sandbox(app(every(hours=1))) as box:
        with pytest.raises(HeadwayError, match=r"^advance\(5\): .* advance\(hours=1\)"):
            box.advance(wrong)
        with pytest.raises(HeadwayError, match=r"^5 is not a moment"):
            box.advance_to(wrong)


def test_an_undeclared_id_is_an_error_not_an_empty_list() -> None:
    with Sandbox(app(every(hours=1)), start=MONDAY) as box:
        for ask in (box.executions, box.last):
            with pytest.raises(ManifestNotFound, match="extract-user'"):
                ask("extract-user")


def test_time_does_not_go_back() -> None:
    with Sandbox(app(every(hours=1)), start=MONDAY) as box:
        with pytest.raises(ValueError, match="cannot go back"):
            box.advance(hours=-1)
        assert box.executions() == []


def test_the_applications_own_database_is_not_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADWAY_DATABASE_URL", f"sqlite:///{tmp_path / 'real.db'}")
    with Sandbox(app(every(hours=1)), start=MONDAY) as box:
        file = Path(str(box.store.url.database))
        assert file.exists()
        box.run_until_idle()
    assert list(tmp_path.iterdir()) == []
    assert not file.parent.exists()


def test_a_database_that_is_not_empty_is_refused(sqlite_url: str) -> None:
    hw = app(every(hours=1))
    with Sandbox(hw, database_url=sqlite_url):
        pass
    with pytest.raises(HeadwayError, match="empty database"), Sandbox(hw, database_url=sqlite_url):
        pass


def test_two_sandboxes_of_two_applications_know_nothing_of_each_other() -> None:
    hw, other_hw = app(every(hours=1)), app(every(hours=1))
    with Sandbox(hw, start=MONDAY) as one, Sandbox(other_hw, start=MONDAY) as other:
        one.advance(hours=2)
        assert (len(one.executions()), len(other.executions())) == (3, 0)
        hw.trigger("extract-users")
        assert (len(one.queued()), len(other.queued())) == (1, 0)


def test_async_code_is_told_how_to_use_it() -> None:
    async def use(box: Sandbox) -> int:
        with pytest.raises(HeadwayError, match=r"asyncio\.to_thread"):
            box.run_until_idle()
        await asyncio.to_thread(box.run_until_idle)
        return len(box.executions())

    with Sandbox(app(every(hours=1)), start=MONDAY) as box:
        assert asyncio.run(use(box)) == 1


def test_pytest_is_not_needed() -> None:
    script = "import sys; sys.modules['pytest'] = None; import headway.testing"
    subprocess.run([sys.executable, "-c", script], check=True)
