"""Which signals ask a command to stop."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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
