"""What a job says about trying again, and what it returns."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from headway import DoNotRetry, RetryAfter, RetryPolicy, Run, cron, every
from headway.domain.execution import ExecutionState
from headway.domain.retry import jittered
from headway.domain.schedule import Schedule
from headway.errors import DefinitionError
from headway.store import resolution
from tests.builders import START, Scene, reasons
from tests.runner import isolated_jobs as jobs
from tests.runner.conftest import StartPool
from tests.runtime_verbs import runtime_of

PROMPTLY = RetryPolicy(delay=timedelta(minutes=1), multiplier=1)


def failing_with(scene: Scene, error: Exception, **options: Any) -> None:
    def fail() -> None:
        raise error

    scene.app.workflow("fail")(fail)
    scene.app.schedule("fail", "job", None, every(hours=1), **options)
    scene.apply()
    scene.cycle()


def test_do_not_retry_makes_a_dead_letter_at_once(scene: Scene) -> None:
    failing_with(scene, DoNotRetry("the table is gone"), max_retries=5)
    scene.manage()
    [letter] = scene.history.dead_letters.awaiting()
    assert letter.failures == 1
    assert letter.reason == "the job said that trying again would not help"
    assert scene.history.queue.all() == []


def test_once_resolved_it_counts_no_more(scene: Scene) -> None:
    failing_with(scene, DoNotRetry("the table is gone"), max_retries=5)
    scene.manage()
    [letter] = scene.history.dead_letters.awaiting()
    with scene.store.writing() as tx:
        resolution.acknowledge(tx, [letter.id], "it is back")
    scene.clock.advance(hours=1)
    scene.manage()
    assert scene.history.dead_letters.awaiting() == []
    assert len(scene.history.queue.all()) == 1


def test_retry_after_waits_as_long_as_the_job_says(scene: Scene) -> None:
    failing_with(scene, RetryAfter(timedelta(minutes=7), "too many requests"), retry=PROMPTLY)
    assert reasons(scene.manage())["job"] == "retry 1 after 0:07:00"
    scene.clock.advance(minutes=6, seconds=59)
    assert scene.dispatch().dispatched == ()
    scene.clock.advance(seconds=1)
    assert len(scene.dispatch().dispatched) == 1


def test_the_backoff_is_back_after_an_ordinary_failure(scene: Scene) -> None:
    errors: list[Exception] = [RetryAfter(timedelta(minutes=7)), ValueError("no rows")]

    def fail() -> None:
        raise errors.pop(0)

    scene.app.workflow("fail")(fail)
    scene.app.schedule("fail", "job", None, every(hours=12), retry=PROMPTLY, max_retries=5)
    scene.apply()
    scene.cycle()
    scene.manage()
    scene.clock.advance(minutes=7)
    scene.dispatch()
    scene.run()
    assert reasons(scene.manage())["job"] == "retry 2 after 0:01:00"


def test_at_once_means_at_once(scene: Scene) -> None:
    failing_with(scene, RetryAfter(timedelta(0)))
    scene.manage()
    assert len(scene.dispatch().dispatched) == 1


def test_retry_after_counts_as_a_failure(scene: Scene) -> None:
    failing_with(scene, RetryAfter(timedelta(0)), max_retries=1)
    scene.manage()
    assert len(scene.history.dead_letters.awaiting()) == 1


@pytest.mark.parametrize("delay", [-timedelta(seconds=1), timedelta(days=10_000), 5, "5m"])
def test_a_delay_that_is_none_is_refused_where_it_is_written(delay: Any) -> None:
    with pytest.raises(DefinitionError, match=r"RetryAfter delay = .*must be a timedelta from 0"):
        RetryAfter(delay)


def test_jitter_spreads_what_failed_together_and_never_shortens_a_wait(scene: Scene) -> None:
    spread = RetryPolicy(delay=timedelta(minutes=10), jitter=0.5)
    for number in range(20):
        scene.app.schedule("work", f"job-{number}", None, every(hours=12), retry=spread)
    scene.failing = {f"job-{number}" for number in range(20)}
    scene.configure(max_active_jobs=None)
    scene.apply()
    scene.cycle()
    told = reasons(scene.manage())
    assert len(set(told.values())) > 10
    scene.clock.advance(minutes=10)
    early = len(scene.dispatch().dispatched)
    scene.clock.advance(minutes=5)
    assert 0 <= early < 20 and early + len(scene.dispatch().dispatched) == 20


def test_without_jitter_a_wait_is_the_formula() -> None:
    wait = timedelta(minutes=10)
    assert jittered(wait, RetryPolicy(), "load", 3) == wait


@pytest.mark.parametrize("jitter", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_a_jitter_that_is_none_is_refused(jitter: Any) -> None:
    with pytest.raises(DefinitionError, match=r"retry jitter .*must be a number from 0 to 1"):
        RetryPolicy(jitter=jitter)


def output_of(scene: Scene, returned: Any) -> str | None:
    scene.app.workflow("give", keep_output=True)(lambda: returned)
    execution_id = scene.pending("give")
    scene.run()
    ended = scene.execution(execution_id)
    assert ended.state is ExecutionState.COMPLETED
    return ended.output


def test_output_is_kept_when_asked_for(scene: Scene) -> None:
    assert output_of(scene, {"rows": 7, "named": jobs.Place(folder="x")}) == (
        '{"rows":7,"named":{"folder":"x"}}'
    )


def test_output_is_not_kept_otherwise(scene: Scene) -> None:
    scene.app.workflow("give")(lambda: 7)
    execution_id = scene.pending("give")
    scene.run()
    assert scene.execution(execution_id).output is None


@pytest.mark.parametrize("returned", [object(), float("nan"), "x" * 300_000, {"\ud800": 1}])
def test_what_cannot_be_kept_is_no_failure_but_is_said(
    scene: Scene, returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "headway.run"):
        output = output_of(scene, returned)
    told = [one.getMessage() for one in caplog.records if "not kept" in one.getMessage()]
    assert (output is None and len(told) == 1) or (output is not None and not told)


def test_an_isolated_run_says_both_too(scene: Scene, start_pool: StartPool) -> None:
    scene.app.workflow("final", steps=(jobs.give_up,), isolated=True)
    scene.app.workflow("give", steps=(jobs.give,), isolated=True, keep_output=True)
    scene.app.schedule("final", "job", None, every(hours=1), max_retries=5)
    scene.apply()
    scene.manage()
    scene.dispatch()
    kept = scene.pending("give")
    start_pool()
    scene.events.wait_for("execution.failed")
    scene.events.wait_for("execution.completed")
    assert scene.execution(kept).output == "[1,2]"
    scene.manage()
    assert [letter.failures for letter in scene.history.dead_letters.awaiting()] == [1]


SCHEDULES = {
    "interval": every(hours=1),
    "short interval": every(seconds=20),
    "fixed rate": every(hours=1, fixed_rate=True),
    "cron": cron("30 * * * *"),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_retries_of_the_first_run_stand_for_what_that_stood_for(
    scene: Scene, schedule: Schedule
) -> None:
    keys: list[str] = []

    def note(run: Run) -> None:
        keys.append(run.idempotency_key)
        if len(keys) not in (4, 5):
            raise RuntimeError("once more")

    scene.app.workflow("note")(note)
    scene.app.schedule("note", "job", None, schedule, retry=PROMPTLY, max_retries=5)
    scene.apply()
    scene.cycle()
    for _ in range(3):
        scene.clock.advance(seconds=30)
        scene.manage()
        scene.clock.advance(seconds=30)
        scene.cycle()
    assert len(keys) == 4 and len(set(keys)) == 1


def test_retries_of_an_interval_stand_for_what_failed_until_it_is_settled(scene: Scene) -> None:
    keys: list[str] = []

    def note(run: Run) -> None:
        keys.append(run.idempotency_key)
        if len(keys) in (2, 3, 5):
            raise RuntimeError("once more")

    scene.app.workflow("note")(note)
    scene.app.schedule("note", "job", None, every(seconds=20), retry=PROMPTLY, max_retries=5)
    scene.apply()
    for _ in range(20):
        scene.cycle()
        scene.clock.advance(seconds=20)
    assert keys[1] == keys[2] == keys[3], "two failures and the success are one piece of work"
    assert keys[4] == keys[5], "and the next ones are another"
    assert len(set(keys)) == len(keys) - 3


def test_a_cancelled_retry_settles_what_failed(scene: Scene) -> None:
    failing_with(scene, ValueError("no rows"), max_retries=5, retry=PROMPTLY)
    scene.manage()
    runtime_of(scene).cancelling.cancel("job", None, None, None, None)
    scene.clock.advance(hours=1)
    scene.cycle()
    first, second = scene.history.executions.all("job")
    assert first.scheduled_for == START and second.scheduled_for == START + timedelta(hours=1)


def test_the_idempotency_key_is_the_same_for_every_attempt_at_the_same_work(scene: Scene) -> None:
    keys: list[tuple[str | None, str]] = []

    def note(run: Run) -> None:
        keys.append((run.manifest, run.idempotency_key))
        if len(keys) in (3, 5):
            raise RuntimeError("once more")

    def pass_an_hour() -> None:
        for _ in range(6):
            scene.cycle()
            scene.clock.advance(minutes=10)

    scene.app.workflow("note")(note)
    chain = scene.app.schedule("note", "parent", None, cron("0 * * * *"), retry=PROMPTLY)
    chain.include("note", "child", None, retry=PROMPTLY)
    scene.apply()
    pass_an_hour()
    pass_an_hour()
    for _ in range(2):
        scene.pending("note")
    scene.run()

    ran = ["parent", "child", "parent", "parent", "child", "child", None, None]
    assert [manifest for manifest, _ in keys] == ran
    first, child, again, retried, child_again, child_retried, *by_hand = [key for _, key in keys]
    assert again == retried and child_again == child_retried
    assert len({first, child, again, child_again, *by_hand}) == 6
