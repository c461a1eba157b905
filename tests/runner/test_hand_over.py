"""A run that asks a person to go on: written when it completes, and only then."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headway import Run, every
from headway.domain.azolla.artifacts import PauseReason
from headway.domain.azolla.filters import PauseStateFilter
from headway.domain.execution import ExecutionState
from headway.errors import DefinitionError
from headway.runner.cancellation import StopReason
from headway.store import objectives, substrate
from tests.builders import Scene, eventually
from tests.runner import isolated_jobs
from tests.runner.conftest import Gate, StartPool
from tests.runner.isolated_jobs import Place


@pytest.fixture(autouse=True)
def started_once(scene: Scene) -> None:
    with scene.store.writing() as tx:
        objectives.ensure_standing(tx, "tests", "tests")


def handed_over(scene: Scene) -> list[tuple[PauseReason, tuple[str, ...]]]:
    with scene.store.reading() as tx:
        found = substrate.pause_states(tx, PauseStateFilter())
    return [(one.reason, one.prioritized_actions) for one in found]


def run_once(scene: Scene, function: Any, **options: Any) -> ExecutionState:
    work = scene.app.workflow("report", steps=(function,), **options)
    scene.app.schedule(work, "report-users", None, every(hours=1))
    scene.apply()
    scene.cycle()
    [one] = scene.history.executions.all()
    return one.state


def sync_step(run: Run) -> None:
    run.hand_over("check the figures", "publish them")


async def async_step(run: Run) -> None:
    run.hand_over("check the figures", "publish them")


@pytest.mark.parametrize("step", [sync_step, async_step])
def test_a_completed_run_leaves_what_it_asked_for(scene: Scene, step: Any) -> None:
    assert run_once(scene, step) is ExecutionState.COMPLETED
    expected = ("report-users: check the figures", "report-users: publish them")
    assert handed_over(scene) == [(PauseReason.RUN_COMPLETE, expected)]


@pytest.mark.parametrize("step", [sync_step, async_step])
def test_a_worker_pool_writes_it_too(scene: Scene, start_pool: StartPool, step: Any) -> None:
    scene.app.workflow("report", steps=(step,))
    execution_id = scene.pending("report")
    start_pool()
    eventually(lambda: scene.execution(execution_id).state.terminal)
    [(_, actions)] = handed_over(scene)
    assert actions[0] == "ad-hoc report: check the figures"


def test_said_again_the_new_sentences_count(scene: Scene) -> None:
    def change_of_mind(run: Run) -> None:
        run.hand_over("check the figures", "publish them")
        run.hand_over("forget it")

    run_once(scene, change_of_mind)
    assert handed_over(scene) == [(PauseReason.RUN_COMPLETE, ("report-users: forget it",))]


def test_a_run_that_fails_leaves_none_and_its_retry_its_own(scene: Scene) -> None:
    attempts: list[int] = []

    def second_time_lucky(run: Run) -> None:
        attempts.append(run.attempt)
        run.hand_over(f"check attempt {run.attempt}")
        if run.attempt == 1:
            raise RuntimeError("no rows")

    assert run_once(scene, second_time_lucky) is ExecutionState.FAILED
    assert handed_over(scene) == []
    scene.manage()
    scene.clock.advance(minutes=5)
    scene.dispatch()
    scene.run()
    assert attempts == [1, 2]
    assert handed_over(scene) == [(PauseReason.RUN_COMPLETE, ("report-users: check attempt 2",))]


def test_a_run_that_is_cancelled_leaves_none(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    def stopped(run: Run) -> None:
        run.hand_over("check the figures")
        gate.wait()
        run.raise_if_cancelled()

    scene.app.workflow("report", steps=(stopped,))
    execution_id = scene.pending("report")
    pool = start_pool()
    gate.arrived()
    pool.cancellations.cancel_all([execution_id], StopReason.REQUESTED)
    gate.open()
    eventually(lambda: scene.execution(execution_id).state is ExecutionState.CANCELLED)
    assert handed_over(scene) == []


def test_a_run_that_times_out_leaves_that_instead(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    def slow(run: Run) -> None:
        run.hand_over("check the figures")
        gate.wait()
        run.raise_if_cancelled()

    work = scene.app.workflow("report", steps=(slow,))
    scene.app.schedule(work, "slow-report", every(hours=1), timeout=timedelta(minutes=1))
    scene.apply()
    scene.manage()
    [execution_id] = scene.dispatch().dispatched
    pool = start_pool()
    gate.arrived()
    scene.clock.advance(minutes=2)
    pool.cancellations.cancel_all([execution_id], StopReason.TIMEOUT)
    gate.open()
    eventually(lambda: scene.execution(execution_id).state is ExecutionState.FAILED)
    [(reason, actions)] = handed_over(scene)
    assert reason is PauseReason.BUDGET_EXHAUSTED
    assert actions[1] == "split its work, or raise the timeout of slow-report"


@pytest.mark.parametrize(
    ("step", "state", "count"),
    [
        (isolated_jobs.hand_over, ExecutionState.COMPLETED, 1),
        (isolated_jobs.hand_over_and_fail, ExecutionState.FAILED, 0),
    ],
)
def test_an_isolated_run_hands_over_as_well(
    scene: Scene,
    start_pool: StartPool,
    tmp_path: Path,
    step: Any,
    state: ExecutionState,
    count: int,
) -> None:
    work = scene.app.workflow("isolated", steps=(step,), isolated=True)
    scene.app.schedule(work, "job", Place(folder=str(tmp_path)), every(hours=1))
    scene.apply()
    scene.manage()
    [execution_id] = scene.dispatch().dispatched
    start_pool()
    eventually(lambda: scene.execution(execution_id).state.terminal)
    assert scene.execution(execution_id).state is state
    expected = ("job: check the figures", "job: publish them")
    assert handed_over(scene) == [(PauseReason.RUN_COMPLETE, expected)] * count


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ((), "hand_over: 0 actions: must be 1 to 3 texts; for example"),
        (("a", "b", "c", "d"), "hand_over: 4 actions: must be 1 to 3 texts; for example"),
        (("a", " "), "hand_over action = ' ': must be a text that says something; for example"),
        ((7,), "hand_over action = 7: must be a text that says something; for example"),
    ],
)
def test_what_cannot_be_handed_over_is_said_in_one_line(actions: Any, said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Run(execution_id=7, workflow="load").hand_over(*actions)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)
