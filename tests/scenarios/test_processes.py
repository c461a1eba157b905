"""``headway run --processes``: several processes that start, stop and die together."""

import multiprocessing
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from headway.cli.signals import BY_PARENT, StopSignals
from headway.domain.execution import ExecutionState
from headway.store.tables import server
from headway_command.stopping import SIGNALS
from tests.builders import PATIENCE, eventually
from tests.scenarios.deployment import Deployment
from tests.surface.command_line import finish, read_until, start

COMPLETED, HANDED_BACK = ExecutionState.COMPLETED, ExecutionState.HANDED_BACK
# Whole crews of processes: beside the others that are long they would not come to life in time.
pytestmark = pytest.mark.long

TWO_SLOTS = {"HEADWAY_WORKER_COUNT": "2", "HEADWAY_SERVER_LEASE": "6s"}

BROKEN_IN_CHILDREN = """
import multiprocessing, os
from headway import Headway

hw = Headway("broken")
if multiprocessing.parent_process() is not None:
    os._exit(3)
"""


HANGS = """
import threading
from datetime import timedelta
from headway import Headway, every

hw = Headway("hangs", worker_count=2, cancel_grace=0.1, shutdown_timeout=60,
             manager_polling_interval=0.5)

@hw.workflow
def hang() -> None:
    threading.Event().wait()

hw.schedule(hang, "hang", None, every(days=365), timeout=timedelta(seconds=1))
"""


def pids(deployment: Deployment) -> set[int]:
    with deployment.store.reading() as tx:
        return set(tx.connection.execute(select(server.c.pid)).scalars())


def three_with_six_jobs(deployment: Deployment) -> subprocess.Popen[bytes]:
    process = deployment.start("--processes", "3", jobs=6, settings=TWO_SLOTS)
    deployment.wait_for("start", 6)
    assert len(pids(deployment)) == 3 and process.pid not in pids(deployment)
    return process


def assert_handed_back(deployment: Deployment, count: int) -> None:
    """And nothing else; one that stops later than another may have dispatched it again."""
    states = deployment.states()
    assert states.keys() <= {HANDED_BACK, ExecutionState.PENDING}, deployment.log()
    assert states[HANDED_BACK] >= count, deployment.log()


def gone(pid: int) -> bool:
    """Whether the process has ended, and is at most remembered by whoever started it."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def test_the_first_signal_lets_all_of_them_finish(deployment: Deployment) -> None:
    process = three_with_six_jobs(deployment)
    process.send_signal(signal.SIGTERM)
    eventually(lambda: "stopping:" in deployment.log())
    deployment.release()
    deployment.ended(process)

    assert deployment.states() == {COMPLETED: 6}
    assert pids(deployment) == set()


def test_the_second_signal_hands_back_at_once(deployment: Deployment) -> None:
    process = three_with_six_jobs(deployment)
    process.send_signal(signal.SIGTERM)
    eventually(lambda: "stopping:" in deployment.log())
    process.send_signal(signal.SIGINT)
    deployment.ended(process)

    assert_handed_back(deployment, 6)
    assert pids(deployment) == set()


def test_one_that_dies_is_replaced_and_what_it_ran_starts_again(
    postgres_deployment: Deployment,
) -> None:
    deployment = postgres_deployment
    process = three_with_six_jobs(deployment)
    before = pids(deployment)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(pids(deployment) - before) == 1)
    deployment.release()
    deployment.wait_until_completed(6)
    deployment.stop(process)

    assert f"process {victim} was ended by SIGKILL; another starts in 0.5 s" in deployment.log()
    assert deployment.states()[COMPLETED] == 6


def test_one_that_is_killed_while_all_stop_decides_the_exit_code(
    postgres_deployment: Deployment,
) -> None:
    """The others end well, and their supervisor tells of the one as a shell would."""
    deployment = postgres_deployment
    process = three_with_six_jobs(deployment)
    process.send_signal(signal.SIGTERM)
    eventually(lambda: "stopping:" in deployment.log())
    os.kill(max(pids(deployment)), signal.SIGKILL)
    deployment.release()

    assert process.wait(PATIENCE) == 128 + signal.SIGKILL, deployment.log()


def test_they_end_with_their_parent(deployment: Deployment) -> None:
    """Even if that is killed without a word: what they run goes back to the queue."""
    process = three_with_six_jobs(deployment)
    crew = pids(deployment)
    process.kill()
    process.wait()
    eventually(lambda: all(gone(pid) for pid in crew))

    assert_handed_back(deployment, 6)
    assert pids(deployment) == set()


def test_the_pause_before_another_start_grows_and_the_worst_exit_code_is_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN_IN_CHILDREN)
    process = start(tmp_path, "run", "broken:hw", "--processes", "2")
    said = read_until(process.stderr, "ended with exit code 3; another starts in 2 s")
    process.send_signal(signal.SIGTERM)
    code, _, _ = finish(process)

    assert code == 3
    assert said.index("starts in 0.5 s") < said.index("starts in 1 s") < said.index("starts in 2 s")


def test_a_process_that_has_lost_half_of_its_slots_ends_to_be_started_again(
    tmp_path: Path,
) -> None:
    """And does not wait for what it lost them to."""
    (tmp_path / "hangs.py").write_text(HANGS)
    code, _, err = finish(start(tmp_path, "run", "hangs:hw"))

    assert code == 75
    assert "stuck       hang #1 does not stop" in err
    assert "worn out" in err


def test_one_that_is_worn_out_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    process = start(tmp_path, "run", "hangs:hw", "--processes", "2")
    read_until(process.stderr, "ended with exit code 75; another starts in 0.5 s")
    process.send_signal(signal.SIGTERM)

    assert finish(process)[0] in (0, 75), "the worst of them, if no other was there yet"


def test_what_is_wrong_with_the_application_is_said_once(tmp_path: Path) -> None:
    process = start(tmp_path, "run", "missing:hw", "--processes", "4")
    code, _, err = finish(process)

    assert (code, len(err.splitlines())) == (2, 1)


def test_no_process_at_all_is_refused(tmp_path: Path) -> None:
    code, _, err = finish(start(tmp_path, "run", "missing:hw", "--processes", "0"))

    assert code == 2
    assert "0 is not at least 1; for example --processes 4" in err


@pytest.fixture
def same_signals() -> Iterator[None]:
    """The test run keeps its own handlers."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def stop_signals(same_signals: None) -> Callable[..., list[int | None]]:
    signals = StopSignals()

    def seen(*stops: int) -> list[int | None]:
        for stop in stops:
            signals.stops.put(stop)
        heard = []
        while not signals.stops.empty():
            heard.append(signals.wait(time.monotonic() + 0.01))
        return [one for one in heard if one is not None]

    return seen


@pytest.mark.parametrize(
    ("stops", "counted"),
    [
        ([signal.SIGTERM, BY_PARENT], 1),
        ([BY_PARENT, signal.SIGINT], 1),
        ([BY_PARENT, BY_PARENT, signal.SIGTERM, signal.SIGTERM], 2),
        ([signal.SIGTERM, signal.SIGINT], 2),
        ([BY_PARENT, BY_PARENT], 2),
    ],
)
def test_a_signal_to_all_that_the_parent_passes_on_is_one_request(
    stop_signals: Callable[..., list[int | None]], stops: list[int], counted: int
) -> None:
    assert len(stop_signals(*stops)) == counted


@pytest.mark.usefixtures("same_signals")
def test_a_process_whose_parent_is_gone_is_told_twice() -> None:
    """The second time is what makes it hand back at once."""
    signals = StopSignals()
    signals.install()
    theirs, ours = multiprocessing.Pipe(duplex=False)
    signals.obey(theirs)
    ours.close()

    deadline = time.monotonic() + PATIENCE
    assert [signals.wait(deadline), signals.wait(deadline)] == [BY_PARENT, BY_PARENT]
