"""Isolated workflows: a process for each run, which can be killed and breaks nobody else."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headway import Headway, every
from headway.domain.execution import Execution, ExecutionState
from headway.errors import DefinitionError
from headway.runner.cancellation import StopReason
from tests.builders import Scene, eventually
from tests.runner import isolated_jobs as jobs
from tests.runner.conftest import StartPool
from tests.runner.isolated_jobs import Place

SOON = timedelta(seconds=1)
NEVER = timedelta(days=1)

Steps = Callable[..., Any] | tuple[Callable[..., Any], ...]


def start(scene: Scene, steps: Steps, tmp_path: Path, **options: Any) -> int:
    """Declare an isolated workflow and dispatch one run of it."""
    chain = (steps,) if callable(steps) else steps
    limits = {"max_memory": options.pop("max_memory", None)}
    work = scene.app.workflow("isolated", steps=chain, isolated=True, **limits)
    scene.app.schedule(work, "job", Place(folder=str(tmp_path)), every(hours=1), **options)
    scene.apply()
    scene.manage()
    return scene.dispatch().dispatched[0]


def ended(scene: Scene, execution_id: int) -> Execution:
    eventually(lambda: scene.execution(execution_id).state.terminal)
    return scene.execution(execution_id)


def left(tmp_path: Path, name: str) -> str:
    eventually((tmp_path / name).exists)
    return (tmp_path / name).read_text()


def is_gone(pid: int) -> bool:
    """Not there any more, or only as an entry that its parent has not read yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_it_runs_in_another_process_with_all_its_context(
    scene: Scene, start_pool: StartPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = (jobs.note_pid, jobs.leave_everything)
    execution_id = start(scene, chain, tmp_path)
    with caplog.at_level(logging.INFO):
        start_pool()
        run = ended(scene, execution_id)

    assert run.state is ExecutionState.COMPLETED and run.failure is None
    assert int(left(tmp_path, "pid")) != os.getpid()
    assert left(tmp_path, "manifest") == "job"
    assert left(tmp_path, "token") == str(execution_id)
    assert left(tmp_path, "run") == str(["isolated", 1, run.scheduled_for, run.idempotency_key])
    assert run.scheduled_for is not None and run.idempotency_key
    assert left(tmp_path, "thread") == "True", "a sync step has the main thread, as in a script"
    assert run.running_step is None
    told = [record for record in caplog.records if record.getMessage() == "careful with job"]
    assert [(one.name, one.levelname) for one in told] == [("headway.run.isolated", "WARNING")]


def test_its_progress_is_seen_while_it_runs(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.stay_half_way, tmp_path)
    start_pool()
    eventually(lambda: scene.execution(execution_id).progress is not None)
    run = scene.execution(execution_id)
    assert (run.progress, run.progress_note) == (0.5, "half of it")
    (tmp_path / "released").touch()
    assert ended(scene, execution_id).state is ExecutionState.COMPLETED


def test_async_steps_run_there_too(scene: Scene, start_pool: StartPool, tmp_path: Path) -> None:
    execution_id = start(scene, jobs.leave_later, tmp_path)
    start_pool()
    assert ended(scene, execution_id).state is ExecutionState.COMPLETED
    assert (tmp_path / "later").exists()


BREAKING: dict[str, tuple[Steps, str, str]] = {
    "an exception": (jobs.fail, "ValueError", "no rows"),
    "a segmentation fault": (jobs.segfault, "ProcessEnded", "its process was ended by SIGSEGV"),
    "an exit": (jobs.leave_quietly, "ProcessEnded", "ended by itself, with exit code 3"),
}


@pytest.mark.story(40)
@pytest.mark.parametrize("case", BREAKING)
def test_what_breaks_there_is_a_failure_of_that_run_alone(
    scene: Scene, start_pool: StartPool, tmp_path: Path, case: str
) -> None:
    steps, kind, message = BREAKING[case]
    execution_id = start(scene, steps, tmp_path)
    start_pool()
    failure = ended(scene, execution_id).failure
    assert failure is not None
    assert failure.type == kind and message in failure.message
    assert failure.step == steps.__name__ if callable(steps) else steps[-1].__name__
    assert scene.execution(execution_id).crashes == 0, "the worker was not lost"


def test_the_input_is_read_there_and_not_in_the_worker(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    work = scene.app.workflow("isolated", steps=(jobs.look,), isolated=True)
    scene.app.schedule(work, "job", jobs.Witness(folder=str(tmp_path)), every(hours=1))
    scene.apply()
    scene.manage()
    execution_id = scene.dispatch().dispatched[0]
    (tmp_path / f"read-in-{os.getpid()}").unlink()

    start_pool()
    assert ended(scene, execution_id).state is ExecutionState.COMPLETED
    [trace] = tmp_path.glob("read-in-*")
    assert trace.name != f"read-in-{os.getpid()}"


@pytest.mark.story(40)
def test_memory_beyond_the_limit_is_refused(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.exhaust_memory, tmp_path, max_memory="512MiB")
    start_pool()
    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.type == "MemoryError"
    assert not (tmp_path / "had room").exists()


def test_a_run_that_ignores_its_timeout_is_killed_after_the_grace(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.never_let_go, tmp_path, timeout=SOON)
    start_pool(cancel_grace=SOON)
    run = ended(scene, execution_id)
    assert run.state is ExecutionState.FAILED and run.failure is not None
    assert run.failure.type == "JobTimeout"
    assert run.failure.message.endswith("did not stop when asked, and was killed")
    eventually(lambda: is_gone(int(left(tmp_path, "pid"))))


def test_within_the_grace_it_is_only_asked(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.wait_until_asked, tmp_path, timeout=SOON)
    start_pool(cancel_grace=NEVER)
    run = ended(scene, execution_id)
    assert (tmp_path / "asked").exists()
    assert run.failure is not None and run.failure.type == "JobTimeout"
    assert "killed" not in run.failure.message


def test_before_its_timeout_nobody_asks(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.wait_until_asked, tmp_path, timeout=NEVER)
    pool = start_pool(cancel_grace=SOON)
    left(tmp_path, "pid")
    assert not (tmp_path / "asked").exists()
    assert pool.cancellations.try_cancel(execution_id, StopReason.REQUESTED)
    assert ended(scene, execution_id).state is ExecutionState.CANCELLED


@pytest.mark.parametrize("steps", [jobs.wait_until_asked, jobs.await_for_ever])
def test_a_person_who_cancels_is_heard_at_once(
    scene: Scene, start_pool: StartPool, tmp_path: Path, steps: Steps
) -> None:
    execution_id = start(scene, steps, tmp_path)
    pool = start_pool(cancel_grace=NEVER)
    pid = int(left(tmp_path, "pid"))
    assert pool.cancellations.try_cancel(execution_id, StopReason.REQUESTED)
    assert ended(scene, execution_id).state is ExecutionState.CANCELLED
    eventually(lambda: is_gone(pid))


def test_what_is_not_ours_any_more_is_killed_without_grace(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    start(scene, jobs.never_let_go, tmp_path)
    pool = start_pool(cancel_grace=NEVER)
    pid = int(left(tmp_path, "pid"))
    pool.change_owner("another")
    eventually(lambda: is_gone(pid))


def test_a_stopping_worker_kills_what_does_not_end_and_hands_it_back(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.never_let_go, tmp_path)
    pool = start_pool(cancel_grace=NEVER)
    pid = int(left(tmp_path, "pid"))
    pool.request_stop(grace=0)
    pool.stop()
    assert is_gone(pid), "the next worker's run must not start beside it"
    assert scene.execution(execution_id).state is ExecutionState.HANDED_BACK


def test_its_own_programs_are_killed_with_it(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.run_a_program, tmp_path, timeout=SOON)
    start_pool(cancel_grace=SOON)
    ended(scene, execution_id)
    eventually(lambda: is_gone(int(left(tmp_path, "program"))))


def test_it_may_activate_dormant_dependents(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    place = Place(folder=str(tmp_path))
    work = scene.app.workflow("isolated", steps=(jobs.activate,), isolated=True)
    later = scene.app.workflow("later", steps=(jobs.leave_later,))
    chain = scene.app.schedule(work, "job", place, every(hours=1))
    chain.include(later, "later", place, dormant=True)
    scene.apply()
    scene.manage()
    execution_id = scene.dispatch().dispatched[0]
    start_pool()
    assert ended(scene, execution_id).state is ExecutionState.COMPLETED
    assert left(tmp_path, "took") == "1"
    assert [one.max_attempts for one in scene.history.queue.all()] == [4]
    assert len(scene.dispatch().dispatched) == 1


def test_what_is_wrong_with_an_activation_is_raised_there(
    scene: Scene, start_pool: StartPool, tmp_path: Path
) -> None:
    execution_id = start(scene, jobs.activate_nobody, tmp_path)
    start_pool()
    failure = ended(scene, execution_id).failure
    assert failure is not None and failure.type.endswith("ManifestNotFound")
    assert "'nobody'" in failure.message


WRONG: dict[str, tuple[Callable[[Headway], Any], str]] = {
    "a function inside a function": (
        lambda hw: hw.workflow("inner", steps=(lambda: None,), isolated=True),
        "is defined inside a function",
    ),
    "memory without a process": (
        lambda hw: hw.workflow("load", max_memory="1GB"),
        "max_memory = '1GB': needs a process of its own; write isolated=True",
    ),
    "too little memory": (
        lambda hw: hw.workflow("load", isolated=True, max_memory=1024),
        "max_memory = 1024: must be a number of bytes, or text with a unit, of at least 64MiB",
    ),
    "memory without a meaning": (
        lambda hw: hw.workflow("load", isolated=True, max_memory="plenty"),
        "max_memory = 'plenty': must be",
    ),
    "not a yes or no": (
        lambda hw: hw.workflow("load", isolated="process"),  # type: ignore[call-overload]
        "isolated = 'process': must be True or False",
    ),
    "neither a function nor a name": (
        lambda hw: hw.workflow(5),  # type: ignore[call-overload]
        "hw.workflow takes a function or a name, not int",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_isolated_is_refused_where_it_is_written(case: str) -> None:
    declare, told = WRONG[case]
    with pytest.raises(DefinitionError) as refused:
        declare(Headway())
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_the_same_workflow_is_isolated_everywhere_or_nowhere() -> None:
    hw = Headway()
    hw.workflow("leave", steps=(jobs.leave_later,), isolated=True)
    hw.workflow("leave", steps=(jobs.leave_later,), isolated=True)
    with pytest.raises(DefinitionError, match="already registered with another isolated="):
        hw.workflow("leave", steps=(jobs.leave_later,))


WITHOUT_FORK_SERVER = """
from multiprocessing import reduction
reduction.HAVE_SEND_HANDLE = False  # as where eventlet has put its sockets in the place of Python's
import headway.celery, headway.service
"""


def test_whoever_isolates_nothing_needs_no_fork_server() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FORK_SERVER], capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")
