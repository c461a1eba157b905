"""Isolated runs of real workers: they die with their worker, and Ctrl-C is not meant for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.domain.execution import ExecutionState
from headway.history import History
from headway.store.engine import Store
from tests.builders import PATIENCE, eventually
from tests.runner.test_isolation import is_gone

APP = """
import os, re, time
from pathlib import Path

from headway import Headway, every

hw = Headway("isolated", database_url="sqlite:///headway.db", worker_count=2)


def note(name: str) -> None:
    Path(f".{name}").write_text(str(os.getpid()))
    Path(f".{name}").rename(name)


@hw.workflow(isolated=True)
def hold_the_interpreter() -> None:
    note("holding")
    re.match(r"(a+)+$", "a" * 60 + "b")


@hw.workflow(isolated=True)
def wait_for_release() -> None:
    note("waiting")
    while not Path("released").exists():
        time.sleep(0.01)


hw.schedule(wait_for_release, "wait", every(hours=1))
if Path("hold").exists():
    hw.schedule(hold_the_interpreter, "hold", every(hours=1))
"""

Worker = subprocess.Popen[bytes]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture
def worker(folder: Path, request: pytest.FixtureRequest) -> Iterator[Worker]:
    if getattr(request, "param", None) == "with one that holds on":
        (folder / "hold").touch()
    command = [sys.executable, "-m", "headway", "run", "app:hw"]
    environment = {key: os.environ[key] for key in os.environ if not key.startswith("HEADWAY_")}
    with (folder / "log").open("wb") as log:
        worker = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, process_group=0
        )
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait(PATIENCE)


def pid_in(file: Path) -> int:
    eventually(file.exists)
    return int(file.read_text())


@pytest.mark.parametrize("worker", ["with one that holds on"], indirect=True)
def test_a_killed_worker_takes_its_isolated_runs_along(folder: Path, worker: Worker) -> None:
    """Also one inside C code that lets no thread of its process run."""
    waiting, holding = pid_in(folder / "waiting"), pid_in(folder / "holding")
    assert not is_gone(waiting) and not is_gone(holding)
    worker.kill()
    worker.wait(PATIENCE)
    eventually(lambda: is_gone(waiting) and is_gone(holding))


def test_a_ctrl_c_lets_them_finish(folder: Path, worker: Worker) -> None:
    waiting = pid_in(folder / "waiting")
    os.killpg(worker.pid, signal.SIGINT)  # as a terminal does: everything in its group
    eventually(lambda: "stopping" in (folder / "log").read_text())
    assert not is_gone(waiting)
    (folder / "released").touch()
    assert worker.wait(PATIENCE) == 0

    store = Store(f"sqlite:///{folder}/headway.db")
    [run] = History(store).executions.all()
    store.close()
    assert run.state is ExecutionState.COMPLETED, (folder / "log").read_text()
