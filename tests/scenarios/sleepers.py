"""An application whose first process stops itself between claiming a run and beginning its body."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack

from headway import Headway, Run, every
from headway.observe import Event
from headway.store import taking_turns
from tests.scenarios.jobs import FOLDER, note

hw = Headway("sleepers")


def fall_asleep(event: Event) -> None:
    """Called on the event loop, right before the body; only the first process sleeps."""
    if event.name == "execution.started" and not (FOLDER / "slept").exists():
        (FOLDER / "slept").touch()
        with ExitStack() as nobody_writes:
            # Who sleeps in a transaction keeps every other process out of an SQLite file.
            for turn in list(taking_turns._TURNS.values()):
                nobody_writes.enter_context(turn)
            # To this thread, which stops at once; another thread may take one to the process.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


hw.observer.subscribe(fall_asleep)


@hw.workflow
async def in_loop(run: Run) -> None:
    note("start", run)


@hw.workflow
def in_thread(run: Run) -> None:
    note("start", run)


hw.schedule(os.environ["SCENARIO_WORKFLOW"], "job", None, every(days=365))
