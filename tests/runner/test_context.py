"""What a step is told about its run, and what others see of it while it runs."""

import logging
import threading
from datetime import timedelta

import pytest

from headway import Run, every
from headway.domain.execution import ExecutionState
from tests.builders import START, Scene, eventually
from tests.runner.conftest import Gate, StartPool


def test_a_step_is_told_which_run_it_belongs_to(scene: Scene) -> None:
    seen: list[Run] = []

    @scene.app.workflow
    def load(table: str, run: Run) -> None:
        seen.append(run)
        if len(seen) == 1:
            raise RuntimeError("the first attempt")

    scene.app.schedule(load, "load-users", "users", every(hours=1))
    scene.apply()
    scene.cycle()
    scene.manage()
    scene.clock.advance(minutes=5)
    scene.dispatch()
    scene.run()

    first, second = seen
    recorded = scene.history.executions.all()
    assert [run.execution_id for run in seen] == [one.id for one in recorded]
    assert [run.fencing_token for run in seen] == sorted({run.fencing_token for run in seen})
    assert [run.attempt for run in seen] == [1, 2]
    assert {run.manifest for run in seen} == {"load-users"}
    assert {run.workflow for run in seen} == {"load"}
    assert (first.scheduled_for, second.scheduled_for) == (START, START)
    assert second.logger is logging.getLogger("headway.run.load")
    assert not second.cancelled


def test_a_run_without_a_manifest_says_so(scene: Scene) -> None:
    seen: list[Run] = []

    @scene.app.workflow
    def look(run: Run) -> None:
        seen.append(run)

    execution_id = scene.pending("look")
    scene.run()

    [run] = seen
    assert (run.manifest, run.scheduled_for) == (None, None)
    assert run.execution_id == execution_id


def test_the_running_step_and_its_start_are_visible_while_it_runs(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    other = Gate()

    def extract() -> None:
        gate.wait()

    async def pause() -> None: ...

    def load() -> None:
        other.wait()

    scene.app.workflow("import", steps=(extract, pause, load))
    scene.pending("import")
    start_pool()

    gate.arrived()
    [running] = scene.history.executions.all()
    assert (running.state, running.owner) == (ExecutionState.IN_PROGRESS, "me")
    assert (running.running_step, running.step_started_at) == ("extract", START)

    scene.clock.advance(minutes=3)
    gate.open()
    other.arrived()
    [running] = scene.history.executions.all()
    assert (running.running_step, running.step_started_at) == (
        "load",
        START + timedelta(minutes=3),
    )
    assert running.started_at == START

    other.open()
    scene.events.wait_for("execution.completed")
    [done] = scene.history.executions.all()
    assert done.running_step is None, "a run that has ended is in no step"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_progress_is_visible_while_the_step_runs(
    scene: Scene, start_pool: StartPool, gate: Gate, is_async: bool
) -> None:
    def load(run: Run) -> None:
        run.progress(0.25, "first quarter\x00")
        gate.wait()

    async def load_async(run: Run) -> None:
        run.progress(0.25, "first quarter\x00")

    def wait() -> None:
        gate.wait()

    scene.app.workflow("load", steps=(load_async, wait) if is_async else (load,))
    execution_id = scene.pending("load")
    start_pool()
    gate.arrived()

    eventually(lambda: scene.execution(execution_id).progress == 0.25)
    running = scene.execution(execution_id)
    assert running.state is ExecutionState.IN_PROGRESS
    assert running.progress_note == "first quarter\\x00"


def test_many_reports_end_with_the_newest(scene: Scene, start_pool: StartPool, gate: Gate) -> None:
    def load(run: Run) -> None:
        for done in range(1, 1001):
            run.progress(done / 1000)
        gate.wait()

    scene.app.workflow(load)
    execution_id = scene.pending("load")
    start_pool()
    gate.arrived()

    eventually(lambda: scene.execution(execution_id).progress == 1.0)


def test_progress_inline_is_written_at_once(scene: Scene) -> None:
    seen: list[float | None] = []

    @scene.app.workflow
    def load(run: Run) -> None:
        run.progress(0.5)
        seen.append(scene.execution(run.execution_id).progress)

    scene.pending("load")
    scene.run()

    assert seen == [0.5]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_progress_out_of_range_is_the_steps_error(scene: Scene, fraction: float) -> None:
    @scene.app.workflow
    def load(run: Run) -> None:
        run.progress(fraction)

    execution_id = scene.pending("load")
    scene.run()

    failure = scene.execution(execution_id).failure
    assert failure is not None and "must be from 0 to 1" in failure.message


def test_sync_steps_run_in_threads_of_their_own_and_async_ones_share_a_loop(
    scene: Scene, start_pool: StartPool
) -> None:
    where: dict[str, str] = {}

    def sync() -> None:
        where["sync"] = threading.current_thread().name

    async def first() -> None:
        where["first"] = threading.current_thread().name

    async def second() -> None:
        where["second"] = threading.current_thread().name

    scene.app.workflow("steps", steps=(sync, first, second))
    scene.pending("steps")
    start_pool()
    scene.events.wait_for("execution.completed")

    assert where == {"sync": "headway-step", "first": "headway-worker", "second": "headway-worker"}
