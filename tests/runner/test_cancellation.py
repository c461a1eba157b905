"""Runs that are asked to stop: where they notice, and what becomes of them."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from headway import JobCancelled, Run, every
from headway.domain.execution import Execution, ExecutionState, FailureCode
from headway.manager.cycle import ManifestManager
from headway.runner.cancellation import Cancellation, CancellationRegistry, StopReason
from headway.store import executions
from tests.builders import Scene
from tests.runner.conftest import Gate, StartPool

REQUESTED = StopReason.REQUESTED


def flag(scene: Scene, execution_id: int, reason: str = "requested") -> None:
    with scene.store.writing() as tx:
        assert executions.request_cancel(tx, [execution_id], reason) == [execution_id]


def declare(scene: Scene, workflow: Any, **options: Any) -> int:
    """One pending run of manifest load-users; its id."""
    scene.app.schedule(workflow, "load-users", None, every(hours=1), **options)
    scene.apply()
    scene.manage()
    [execution_id] = scene.dispatch().dispatched
    return execution_id


def ended(scene: Scene, execution_id: int, state: str) -> Execution:
    scene.events.wait_for(f"execution.{state}", execution_id=execution_id)
    return scene.execution(execution_id)


@pytest.mark.parametrize("flagged_in", ["first", "second"])
def test_the_flag_in_the_database_is_seen_before_each_step(scene: Scene, flagged_in: str) -> None:
    ran: list[str] = []

    def first(run: Run) -> None:
        ran.append("first")
        if flagged_in == "first":
            flag(scene, run.execution_id)

    async def second(run: Run) -> None:
        ran.append("second")
        flag(scene, run.execution_id)

    def third() -> None:
        ran.append("third")

    execution_id = declare(scene, scene.app.workflow("three", steps=(first, second, third)))

    assert scene.run().ended == {ExecutionState.CANCELLED: 1}
    assert ran == ["first", "second"][: 1 if flagged_in == "first" else 2]
    cancelled = scene.execution(execution_id)
    assert cancelled.failure is not None
    assert cancelled.failure.step == ("second" if flagged_in == "first" else "third")


def test_a_cancelled_run_is_neither_retried_nor_dead_lettered(scene: Scene) -> None:
    def first(run: Run) -> None:
        flag(scene, run.execution_id)

    def second() -> None: ...

    declare(scene, scene.app.workflow("two", steps=(first, second)), max_retries=1)
    scene.run()

    result = scene.manage()

    assert (result.queued, result.dead_lettered) == (0, 0)
    scene.clock.advance(hours=1)
    assert scene.manage().queued == 1, "the next occurrence comes as ever"


def test_the_registry_interrupts_an_async_step_where_it_waits(
    scene: Scene, start_pool: StartPool
) -> None:
    waiting = threading.Event()
    cleaned_up: list[bool] = []

    @scene.app.workflow
    async def wait_forever() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.append(True)

    execution_id = declare(scene, wait_forever)
    pool = start_pool()
    assert waiting.wait(20)
    flag(scene, execution_id)

    assert pool.cancellations.try_cancel(execution_id, REQUESTED)

    cancelled = ended(scene, execution_id, "cancelled")
    assert cancelled.failure is not None and cancelled.failure.step == "wait_forever"
    assert cleaned_up == [True]
    assert not pool.cancellations.try_cancel(execution_id, REQUESTED), "it is over"


def test_a_sync_step_sees_it_in_its_context_and_decides_itself(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    def load(run: Run) -> None:
        gate.wait()
        run.raise_if_cancelled()

    execution_id = declare(scene, load)
    pool = start_pool()
    gate.arrived()

    pool.cancellations.try_cancel(execution_id, REQUESTED)
    assert scene.execution(execution_id).state is ExecutionState.IN_PROGRESS
    gate.open()

    assert ended(scene, execution_id, "cancelled").state is ExecutionState.CANCELLED


def test_a_last_step_that_finishes_all_the_same_is_completed(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    def load(run: Run) -> None:
        gate.wait()
        assert run.cancelled

    execution_id = declare(scene, load)
    pool = start_pool()
    gate.arrived()
    pool.cancellations.try_cancel(execution_id, REQUESTED)
    gate.open()

    assert ended(scene, execution_id, "completed").failure is None


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_timeout_is_a_failure_called_job_timeout_and_counts(
    scene: Scene, start_pool: StartPool, gate: Gate, is_async: bool
) -> None:
    def load(run: Run) -> None:
        gate.wait()

    async def load_async() -> None:
        gate.note_arrival()
        await asyncio.Event().wait()

    def never() -> None: ...

    steps = (load_async, never) if is_async else (load, never)
    timeout = timedelta(seconds=10)
    execution_id = declare(
        scene, scene.app.workflow("slow", steps=steps), max_retries=1, timeout=timeout
    )
    pool = start_pool()
    gate.arrived()
    scene.clock.advance(seconds=11)

    manager = ManifestManager(
        scene.store,
        scene.app.settings,
        scene.app.observer,
        cancel_here=lambda ids: pool.cancellations.cancel_all(ids, StopReason.TIMEOUT),
    )
    assert manager.run_once().cancelled == 1
    gate.open()

    failure = ended(scene, execution_id, "failed").failure
    assert failure is not None and failure.type == FailureCode.JOB_TIMEOUT
    assert failure.step == ("load_async" if is_async else "never")
    assert manager.run_once().dead_lettered == 1


def test_a_timeout_flagged_by_another_server_is_seen_at_the_next_step(scene: Scene) -> None:
    def first(run: Run) -> None:
        flag(scene, run.execution_id, "timeout")

    def second() -> None: ...

    execution_id = declare(scene, scene.app.workflow("two", steps=(first, second)))

    assert scene.run().ended == {ExecutionState.FAILED: 1}
    failure = scene.execution(execution_id).failure
    assert failure is not None and failure.type == FailureCode.JOB_TIMEOUT


def test_a_run_that_is_no_longer_ours_stops_and_writes_nothing(scene: Scene) -> None:
    def first(run: Run) -> None:
        scene.clock.advance(hours=2)
        scene.manage()

    def second() -> None:
        raise AssertionError("must not run")

    execution_id = declare(scene, scene.app.workflow("two", steps=(first, second)))
    scene.run()

    failure = scene.execution(execution_id).failure
    assert failure is not None and failure.type == FailureCode.STALE_IN_PROGRESS


def test_the_first_reason_counts() -> None:
    handle = Cancellation()
    for reason in (StopReason.TIMEOUT, StopReason.SHUTDOWN, StopReason.REQUESTED):
        handle.request(reason)

    assert handle.reason is StopReason.TIMEOUT


def test_a_sync_step_does_not_start_once_the_run_was_asked_to_stop() -> None:
    handle = Cancellation()
    handle.request(StopReason.SHUTDOWN)

    with pytest.raises(JobCancelled):
        handle.enter_thread()


def test_a_registry_forgets_what_is_over_and_takes_unknown_ids() -> None:
    registry = CancellationRegistry()
    registry.register(7)
    assert registry.ids() == [7]
    registry.unregister(7)
    registry.unregister(8)
    registry.cancel_all([7, 8], REQUESTED)

    assert registry.ids() == []
    assert not registry.try_cancel(7, REQUESTED)


def test_a_stop_that_comes_too_late_does_not_reach_the_next_run_of_the_task() -> None:
    """The loop is told of it before the run ends, and gets to it when another has begun."""

    async def runs_one_after_another() -> str:
        task = asyncio.current_task()
        assert task is not None
        first, second = Cancellation(), Cancellation()
        first.attach_task(task)
        first.request(REQUESTED)
        first.attach(None)
        second.attach_task(task)
        await asyncio.sleep(0)
        return "not interrupted"

    assert asyncio.run(runs_one_after_another()) == "not interrupted"
