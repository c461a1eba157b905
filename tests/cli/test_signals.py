"""Which signals ask a command to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from headway.cli.signals import BY_PARENT, StopSignals
from headway_command.as_module import is_command
from headway_command.stopping import (
    SIGNALS,
    Interrupted,
    exit_code,
    is_interrupting,
    is_long_running,
    noted,
)
from tests.builders import PATIENCE

FIRST_STOP = """
import os, signal, sys
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[1]))
from headway.cli.signals import StopSignals
signals = StopSignals()
signals.install()
for number in (signal.SIGHUP, signal.SIGTERM):
    os.kill(os.getpid(), number)
print(signals.wait())
"""


@pytest.mark.parametrize(
    ("before", "first"), [("SIG_IGN", signal.SIGTERM), ("SIG_DFL", signal.SIGHUP)]
)
def test_a_hang_up_that_is_to_be_ignored_is_no_request_to_stop(
    before: str, first: signal.Signals
) -> None:
    """As nohup has it ignored."""
    command = [sys.executable, "-c", FIRST_STOP, before]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == str(int(first)), done.stderr


@pytest.fixture
def signals() -> Iterator[StopSignals]:
    """The test run keeps its own handlers."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    yield StopSignals()
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_before_the_start_a_signal_interrupts_and_is_noted(signals: StopSignals) -> None:
    assert is_interrupting() and noted() is None and not signals.is_requested()
    with pytest.raises(Interrupted):
        signal.raise_signal(signal.SIGTERM)
    assert noted() == signal.SIGTERM
    assert signals.is_requested()
    with pytest.raises(Interrupted):
        signals.install()
    StopSignals()
    assert noted() is None, "another start begins anew"


def test_from_then_on_a_signal_waits_to_be_read(signals: StopSignals) -> None:
    signals.install()
    assert not is_interrupting() and not signals.is_requested()
    assert signals.wait(time.monotonic() + 0.01) is None
    signal.raise_signal(signal.SIGTERM)
    assert signals.is_requested() and noted() is None
    assert signals.wait(time.monotonic() + PATIENCE) == signal.SIGTERM


@pytest.mark.parametrize(
    ("stops", "heard"),
    [
        ([signal.SIGTERM, BY_PARENT], [signal.SIGTERM]),
        ([BY_PARENT, signal.SIGINT], [BY_PARENT]),
        ([signal.SIGINT, signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]),
        ([75, 75, signal.SIGTERM], [75, 75, signal.SIGTERM]),
    ],
)
def test_what_the_parent_passes_on_is_heard_once(
    signals: StopSignals, stops: list[int], heard: list[int]
) -> None:
    for stop in stops:
        signals.stops.put(stop)
    told = [signals.wait(time.monotonic() + PATIENCE) for _ in heard]
    assert (told, signals.wait(time.monotonic() + 0.01)) == (heard, None)


@pytest.mark.parametrize(
    ("line", "lasting"),
    [
        ("run shop:hw", True),
        ("worker shop:hw", True),
        ("web shop:hw", True),
        ("demo", True),
        ("azolla serve shop:hw", True),
        ("azolla peers shop:hw", False),
        ("azolla", False),
        ("check run", False),
        ("", False),
    ],
)
def test_which_commands_run_until_they_are_stopped(line: str, lasting: bool) -> None:
    words = line.split()
    assert is_long_running(words) is lasting
    for module in (["-m", "headway"], ["-mheadway"], ["-m", "headway.cli"]):
        assert is_command(["-m", *words], ["python", *module, *words]) is lasting


@pytest.mark.parametrize(
    ("argv", "whole"),
    [
        (["-m", "run"], ["python", "-m", "other", "run"]),
        (["-c", "run"], ["python", "-c", "import headway", "run"]),
        (["-m", "run"], ["run"]),
        ([], ["python"]),
    ],
)
def test_other_programs_are_not_the_command(argv: list[str], whole: list[str]) -> None:
    assert not is_command(argv, whole)


def test_what_stops_a_start_decides_its_exit_code() -> None:
    assert {number.name: exit_code(number) for number in SIGNALS} == {
        "SIGINT": 130,
        "SIGTERM": 0,
        "SIGHUP": 0,
    }
