"""A run that can never succeed ends as a failure: it is not handed back and begun for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from headway import Run, every
from headway.domain.execution import Execution, ExecutionState
from headway.runner import pool as pool_module
from headway.runner import runs, workflow
from headway.store import activation, executions, leases, outcomes
from headway.store.servers import ServerProcess
from tests.builders import OWNER, Scene, eventually
from tests.runner import hidden_jobs
from tests.runner import isolated_jobs as jobs
from tests.runner.conftest import StartPool, starting_pools
from tests.runner.isolated_jobs import Place

FAILED = ExecutionState.FAILED


@pytest.fixture
def start_leased(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartPool]:
    """Starts pools that own a living server row and look often."""
    monkeypatch.setattr(pool_module, "LOOK_PAUSE", 0.05)
    server = ServerProcess(OWNER, "host", 1, ["worker"], ["work"], 4)
    with scene.store.writing() as tx:
        leases.register(tx, server, timedelta(hours=1))
    with starting_pools(scene, leased=True) as start:
        yield start


def ended(scene: Scene, execution_id: int) -> Execution:
    eventually(lambda: scene.execution(execution_id).state.terminal)
    return scene.execution(execution_id)


def isolated(scene: Scene, function: Callable[..., Any], folder: Path) -> int:
    """Dispatch one run of an isolated workflow of this function."""
    work = scene.app.workflow("isolated", steps=(function,), isolated=True)
    scene.app.schedule(work, "job", Place(folder=str(folder)), every(hours=1))
    scene.configure(default_max_retries=0)
    scene.apply()
    scene.manage()
    return scene.dispatch().dispatched[0]


HIDDEN = {"a second def of the same name": "load", "a decorator above": "extract"}


@pytest.mark.parametrize("name", HIDDEN.values(), ids=HIDDEN)
def test_an_isolated_step_its_process_cannot_find_fails_the_run(
    scene: Scene, start_leased: StartPool, tmp_path: Path, name: str
) -> None:
    execution_id = isolated(scene, hidden_jobs.registered[name], tmp_path)
    start_leased()

    run = ended(scene, execution_id)

    assert run.state is FAILED and run.failure is not None, run
    assert run.failure.message == (
        f"workflow 'isolated': isolated = True: step {name!r}: its process finds another object as "
        f"tests.runner.hidden_jobs.{name}, because of a second def of this name or a decorator "
        "above @hw.workflow; give the function a name of its own and write @hw.workflow above all "
        "other decorators"
    )
    scene.manage()
    [letter] = scene.history.dead_letters.page().items
    assert letter.external_id == "job", "charged to its manifest, as any failure"


def test_a_decorator_below_the_registration_is_fine(
    scene: Scene, start_leased: StartPool, tmp_path: Path
) -> None:
    execution_id = isolated(scene, hidden_jobs.registered["found"], tmp_path)
    start_leased()

    assert ended(scene, execution_id).state is ExecutionState.COMPLETED
    assert (tmp_path / "found").exists()


def test_a_timeout_that_cannot_be_read_fails_an_isolated_run(
    scene: Scene, start_leased: StartPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*arguments: object) -> timedelta:
        raise OverflowError("Python int too large to convert to C int")

    monkeypatch.setattr(executions, "timeout_of", unreadable)
    execution_id = isolated(scene, jobs.note_pid, tmp_path)
    start_leased()

    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.type == "OverflowError"


def test_an_isolated_run_waits_for_a_database_that_is_away_before_it_starts(
    scene: Scene, start_leased: StartPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, refusals = executions.timeout_of, iter(range(2))

    def away_twice(*arguments: Any) -> timedelta | None:
        for _ in refusals:
            raise OperationalError("SELECT", {}, Exception("server closed the connection"))
        return ask(*arguments)

    monkeypatch.setattr(executions, "timeout_of", away_twice)
    execution_id = isolated(scene, jobs.note_pid, tmp_path)
    start_leased()

    assert ended(scene, execution_id).state is ExecutionState.COMPLETED


def test_an_error_outside_of_the_steps_fails_the_run(
    scene: Scene, start_leased: StartPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    async def fail(*arguments: object) -> None:
        begun.append(1)
        raise KeyError("outside")

    monkeypatch.setattr(workflow, "_run_here", fail)
    execution_id = scene.pending("work")
    start_leased()

    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.summary == "work: KeyError: 'outside'"
    assert begun == [1]


def test_an_error_beside_the_run_fails_it_as_well(
    scene: Scene, start_leased: StartPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: object) -> None:
        raise KeyError("beside")

    monkeypatch.setattr(runs, "run_claimed", fail)
    execution_id = scene.pending("work")
    start_leased()

    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.summary == "RunWorkflow: KeyError: 'beside'"


def test_an_end_that_cannot_be_written_is_not_run_again(
    scene: Scene, start_leased: StartPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the outcome nor the failure in its place is taken at first."""
    begun: list[int] = []
    finish, refusals = outcomes.finish, iter(range(5))

    def refuse(*arguments: Any, **options: Any) -> Any:
        for number in refusals:
            raise ValueError(f"refused for the {number + 1}. time")
        return finish(*arguments, **options)

    async def load(run: Run) -> None:
        begun.append(run.execution_id)

    scene.app.workflow("load")(load)
    monkeypatch.setattr(outcomes, "finish", refuse)
    execution_id = scene.pending("load")
    start_leased()

    run = ended(scene, execution_id)
    assert run.state is FAILED and run.failure is not None, run
    assert run.failure.step == "RecordOutcome" and "refused for the" in run.failure.message
    assert begun == [execution_id] and scene.history.queue.all() == []


def test_an_activation_that_cannot_be_read_fails_the_isolated_run(
    scene: Scene, start_leased: StartPool, tmp_path: Path
) -> None:
    execution_id = isolated(scene, jobs.activate_with_an_exit, tmp_path)
    start_leased()

    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.type == "SystemExit"


def test_an_answer_that_cannot_be_read_is_raised_in_the_isolated_run(
    scene: Scene, start_leased: StartPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception whose class takes other arguments than it keeps is pickled, but never read."""

    def refuse(*arguments: object) -> None:
        raise jobs.UnsendableError(2, "1")

    monkeypatch.setattr(activation, "still_running", refuse)
    execution_id = isolated(scene, jobs.activate_nobody, tmp_path)
    start_leased()

    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.message == "UnsendableError: 2 is not 1"
