"""Steps for processes of their own, which find them here by name. They talk through files."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from pydantic import BaseModel, field_validator

from headway import DoNotRetry, Run


class Place(BaseModel):
    """A folder to leave traces in."""

    folder: str

    def note(self, name: str, text: object = "") -> None:
        """Leave a file that is there whole or not at all."""
        unfinished = Path(self.folder, f".{name}")
        unfinished.write_text(str(text))
        unfinished.rename(Path(self.folder, name))


class Witness(Place):
    """Leaves a trace in whichever process reads it."""

    @field_validator("folder")
    @classmethod
    def seen(cls, folder: str) -> str:
        Path(folder, f"read-in-{os.getpid()}").touch()
        return folder


def look(place: Witness) -> None: ...


def note_pid(place: Place) -> Place:
    place.note("pid", os.getpid())
    return place


def leave_everything(place: Place, run: Run) -> None:
    place.note("manifest", run.manifest)
    place.note("run", [run.workflow, run.attempt, run.scheduled_for, run.idempotency_key])
    place.note("token", run.fencing_token)
    place.note("thread", threading.current_thread() is threading.main_thread())
    run.logger.warning("careful with %s", run.manifest)


def stay_half_way(place: Place, run: Run) -> None:
    run.progress(0.5, "half of it")
    while not Path(place.folder, "released").exists():
        threading.Event().wait(0.01)


async def leave_later(place: Place) -> None:
    await asyncio.sleep(0)
    place.note("later")


def fail(place: Place) -> None:
    raise ValueError("no rows")


def segfault(place: Place) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave_quietly(place: Place) -> None:
    os._exit(3)


def exhaust_memory(place: Place) -> None:
    hoard = [bytearray(16 * 1024 * 1024) for _ in range(256)]
    place.note("had room", len(hoard))


def never_let_go(place: Place) -> None:
    """Holds the interpreter for ever: no thread of this process runs any more."""
    place.note("pid", os.getpid())
    re.match(r"(a+)+$", "a" * 60 + "b")


def run_a_program(place: Place) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as program:
        place.note("program", program.pid)
        place.note("pid", os.getpid())
        program.wait()


def wait_until_asked(place: Place, run: Run) -> None:
    place.note("pid", os.getpid())
    while not run.cancelled:
        threading.Event().wait(0.01)
    place.note("asked")
    run.raise_if_cancelled()


async def await_for_ever(place: Place) -> None:
    place.note("pid", os.getpid())
    await asyncio.Event().wait()


def activate(place: Place, run: Run) -> None:
    place.note("took", run.activate_many([("later", place)], max_attempts=4))


def activate_when_told(place: Place, run: Run) -> None:
    place.note("ready")
    while not Path(place.folder, "go").exists():
        threading.Event().wait(0.01)
    place.note("took", run.activate("later", place))


def activate_nobody(place: Place, run: Run) -> None:
    run.activate("nobody", place)


def give_up() -> None:
    raise DoNotRetry("the table is gone")


def give() -> list[int]:
    return [1, 2]


def hand_over(place: Place, run: Run) -> None:
    run.hand_over("check the figures", "publish them")


def hand_over_and_fail(place: Place, run: Run) -> None:
    run.hand_over("check the figures")
    raise ValueError("no rows")


class Exiting:
    """Ends whichever thread reads it."""

    def __reduce__(self) -> tuple[object, ...]:
        return sys.exit, ("read",)


def activate_with_an_exit(place: Place, run: Run) -> None:
    run.activate("later", Exiting())


class UnsendableError(Exception):
    """Pickled without complaint, but its class does not take what it was pickled with."""

    def __init__(self, number: int, rule: str) -> None:
        super().__init__(f"{number} is not {rule}")
