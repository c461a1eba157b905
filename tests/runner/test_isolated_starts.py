"""A process that does not come to start keeps neither its run nor its slot for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headway import every
from headway.domain.execution import Execution, ExecutionState, FailureCode, Outcome
from headway.runner.cancellation import Cancellation, StopReason
from headway.runner.isolation import process, supervision
from headway.runner.isolation.messages import Job
from headway.runner.isolation.supervision import Limits, run_isolated
from tests.builders import PATIENCE, Scene, eventually
from tests.runner import isolated_jobs
from tests.runner.conftest import StartPool
from tests.runner.isolated_jobs import Place

HANGING, HANG_WHILE = "tests.runner.hanging_preload", "TESTS_HANG_WHILE_THERE"


@pytest.fixture(autouse=True)
def _hanging_fork_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The next fork server hangs before it starts its first process."""
    flag = tmp_path / "hang"
    flag.touch()
    monkeypatch.setenv(HANG_WHILE, str(flag))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setattr(process, "_preloaded", lambda: [HANGING])
    process.end_fork_server()
    yield
    flag.unlink()
    process.end_fork_server()


def isolated(scene: Scene, folder: Path, name: str = "job", **options: Any) -> int:
    """Dispatch one isolated run that leaves its process's id behind."""
    if "isolated" not in scene.app.registry.names():
        scene.app.workflow("isolated", steps=(isolated_jobs.note_pid,), isolated=True)
    scene.app.schedule("isolated", name, Place(folder=str(folder)), every(hours=1), **options)
    scene.apply()
    scene.manage()
    return scene.dispatch().dispatched[0]


def ended(scene: Scene, execution_id: int) -> Execution:
    eventually(lambda: scene.execution(execution_id).state.terminal)
    return scene.execution(execution_id)


def test_a_fork_server_that_hangs_fails_the_run_and_frees_its_slot(
    scene: Scene, start_pool: StartPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "START_PATIENCE", 0.1)
    execution_id = isolated(scene, tmp_path)
    pool = start_pool(worker_count=1)

    run = ended(scene, execution_id)
    assert run.state is ExecutionState.FAILED and run.failure is not None
    assert run.failure.type == FailureCode.PROCESS_ENDED
    assert run.failure.message == "its process did not start within 0.1 seconds"

    beside = scene.pending("work")
    pool.wake()
    assert ended(scene, beside).state is ExecutionState.COMPLETED

    # Another fork server takes the place of the one that hangs, and does not.
    monkeypatch.setattr(supervision, "START_PATIENCE", PATIENCE)
    monkeypatch.setattr(process, "_preloaded", list)
    again = isolated(scene, tmp_path, "another")
    pool.wake()
    assert ended(scene, again).state is ExecutionState.COMPLETED


def test_a_run_is_stopped_while_its_process_starts(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = isolated(scene, tmp_path)
    pool = start_pool(worker_count=1)
    eventually(lambda: bool(pool.cancellations.ids()))

    pool.cancellations.try_cancel(execution_id, StopReason.REQUESTED)

    assert ended(scene, execution_id).state is ExecutionState.CANCELLED
    assert not (tmp_path / "pid").exists()


def test_a_run_that_is_to_stop_already_waits_for_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "START_PATIENCE", 10 * PATIENCE)
    job = Job(b"", "isolated", "null", "job", 1, "job", 1, None, "entry-1", None, False)
    handle, limits = Cancellation(), Limits(timeout=20 * PATIENCE, grace=0)
    handle.request(StopReason.REQUESTED)
    unused: Any = None

    async def run() -> Outcome:
        return await asyncio.wait_for(run_isolated(job, handle, limits, unused), PATIENCE)

    assert asyncio.run(run()).state is ExecutionState.CANCELLED


def test_a_run_that_was_asked_to_stop_is_cancelled_though_its_start_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(b"", "isolated", "null", "job", 1, "job", 1, None, "entry-1", None, False)
    handle, limits = Cancellation(), Limits(timeout=PATIENCE, grace=0)
    unused: Any = None

    def fail(job: Job) -> None:
        raise EOFError("unexpected EOF")

    async def until_both(starting: asyncio.Future[Any], *_: object) -> None:
        await asyncio.wait([starting])
        handle.request(StopReason.REQUESTED)

    monkeypatch.setattr(supervision, "IsolatedProcess", fail)
    monkeypatch.setattr(supervision, "_until_started", until_both)
    outcome = asyncio.run(run_isolated(job, handle, limits, unused))
    assert outcome.state is ExecutionState.CANCELLED


def test_the_timeout_of_a_run_counts_while_its_process_starts(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = isolated(scene, tmp_path, timeout=timedelta(seconds=1))
    start_pool(worker_count=1)

    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.type == FailureCode.JOB_TIMEOUT
