"""Starts of the command in forks of one process, each with a signal at another point.

``python -m tests.surface.signalled COUNT SIGNAL command line…`` counts the calls from the first
handler for signals to the last one, and then sends the signal at COUNT of them, evenly spread.
"""

import json
import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any

import headway.cli
import headway.web.serving
from headway.cli.signals import StopSignals

PATIENCE = 60
COUNTED = "calls: "


def counted(arguments: list[str], at: int, number: signal.Signals) -> None:
    """Run the command with the signal at call *at*, or print how many calls there are."""
    calls, installed = 0, StopSignals.install

    def hook(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            sys.setprofile(None)
            os.kill(os.getpid(), number)

    class Counting(StopSignals):
        def __init__(self) -> None:
            super().__init__()
            sys.setprofile(hook)

        def install(self) -> None:
            if not at:
                sys.setprofile(None)
                os.write(1, f"{COUNTED}{calls}\n".encode())
                self.stops.put(number)
            installed(self)

    headway.cli.run.StopSignals = Counting  # type: ignore[attr-defined]
    signal.alarm(PATIENCE)
    headway.cli.main(arguments)


def forked(arguments: list[str], at: int, number: signal.Signals) -> tuple[int, str]:
    """Exit code and output of one start."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        for descriptor in (1, 2):
            os.dup2(writable, descriptor)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        code = 99
        try:
            counted(arguments, at, number)
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writable)
    with os.fdopen(readable) as output:
        said = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


if __name__ == "__main__":
    count, number, command = int(sys.argv[1]), signal.Signals[sys.argv[2]], sys.argv[3:]
    forked(command, 0, number)  # what is created, compiled or imported only once
    lines = forked(command, 0, number)[1].splitlines()
    [calls] = [int(line.removeprefix(COUNTED)) for line in lines if line.startswith(COUNTED)]
    points = [1 + step * (calls - 1) // (count - 1) for step in range(count)]
    ended = [(point, *forked(command, point, number)) for point in points]
    sys.stdout.write(json.dumps(ended))
