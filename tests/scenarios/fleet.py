"""Many real processes on one database: crews to be killed and stopped, and those that stay.

They are forked from a server that has imported headway already: a killed process is replaced in a
few milliseconds instead of a second.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from headway import Headway
from headway.observe import Event
from headway.service import Service
from headway.store import engine, work_queue
from headway.store.locks import Lock
from headway.wakeups import Role

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["headway.service", "psycopg", __name__])

SLOTS = 100


async def nothing() -> None:
    """What every manifest of a fleet runs."""


def manage(url: str, log: Path) -> None:
    """A process with the manager's role."""
    serve(Headway("fleet-manager", database_url=url), Role.MANAGER, log=log)


def manage_without_lock(url: str, log: Path) -> None:
    """The same, but it leads whoever else does."""
    ask = engine._try_lock
    engine._try_lock = lambda connection, lock, *more: (
        ask(connection, lock, *more) or (datetime.now(UTC) if lock is Lock.MANAGE else None)
    )
    manage(url, log)


def manage_and_count(url: str, log: Path) -> None:
    """The same, but it notes whenever somebody else leads."""
    ask = engine._try_lock

    def ask_and_count(
        connection: Any, lock: Lock, seconds: int, patience: int, wait: bool
    ) -> datetime | None:
        taken_at = ask(connection, lock, seconds, patience, wait)
        if taken_at is None and lock is Lock.MANAGE:
            _note(log, "followed")
        return taken_at

    engine._try_lock = ask_and_count
    manage(url, log)


def manage_and_stop(url: str, log: Path) -> None:
    """The same, but it stops in the middle of its first cycle that has something to queue."""
    enqueue = work_queue.enqueue

    def stop_and_enqueue(tx: Any, entries: Any) -> Any:
        if entries:
            work_queue.enqueue = enqueue
            _note(log, f"stopped {tx.now.isoformat()}")
            os.kill(os.getpid(), signal.SIGSTOP)
        return enqueue(tx, entries)

    work_queue.enqueue = stop_and_enqueue
    manage(url, log)


def work(url: str, log: Path) -> None:
    """A process that dispatches and runs."""
    app = Headway(
        "fleet",
        database_url=url,
        worker_count=SLOTS,
        max_active_jobs=None,
        max_queued_jobs_per_cycle=None,
    )
    app.workflow("nothing")(nothing)
    serve(app, Role.DISPATCHER, Role.WORKER, log=log)


def serve(app: Headway, *roles: Role, log: Path) -> None:
    """Be a process with these roles until the test ends, and log what fails."""

    def note(event: Event) -> None:
        if event.name == "loop.failed":
            _note(log, f"failed {event.fields['loop']} {event.fields['error']}")

    app.observer.subscribe(note)
    Service(app, roles).start()
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])  # whatever becomes of the test, its processes do not outlive it


def _note(log: Path, line: str) -> None:
    with log.open("a") as file:
        file.write(f"{os.getpid()} {line}\n")


class Kill(NamedTuple):
    """A process that is dead since this moment of the clock all processes share, in nanoseconds."""

    pid: int
    moment: int


class Fleet:
    """The processes started on one database, all gone at the end."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.log = folder / "log"
        self.log.touch()
        self.crew: list[ForkServerProcess] = []
        self.kills: list[Kill] = []
        self._stopped: set[int] = set()
        self._all: list[ForkServerProcess] = []

    def start(self, role: Callable[[str, Path], None]) -> ForkServerProcess:
        process = FORKS.Process(target=role, args=(self.url, self.log), daemon=True)
        process.start()
        self._all.append(process)
        return process

    def start_crew(self, count: int, role: Callable[[str, Path], None] = manage) -> None:
        """Those of one role, of whom any may be killed or stopped."""
        self._role = role
        self.crew = [self.start(role) for _ in range(count)]

    def kill_one(self, chance: Random) -> None:
        """SIGKILL, and another one takes its place."""
        place = chance.randrange(len(self.crew))
        victim = self.crew[place]
        assert victim.is_alive(), f"it ended by itself, {victim.exitcode}:\n{self.log.read_text()}"
        victim.kill()
        victim.join()
        assert victim.pid is not None
        self.kills.append(Kill(victim.pid, time.monotonic_ns()))
        self._stopped.discard(place)
        self.crew[place] = self.start(self._role)

    def stop_one(self, chance: Random) -> None:
        """SIGSTOP one that is going."""
        place = chance.choice(sorted({*range(len(self.crew))} - self._stopped))
        self.signal(self.crew[place], signal.SIGSTOP)
        self._stopped.add(place)

    def wake_one(self) -> None:
        """SIGCONT one that was stopped, unless it was killed since."""
        if self._stopped:
            self.signal(self.crew[self._stopped.pop()], signal.SIGCONT)

    def signal(self, process: ForkServerProcess, number: signal.Signals) -> None:
        assert process.pid is not None
        os.kill(process.pid, number)

    def all_alive(self) -> bool:
        """Whether nobody of the crew ended but those that were killed."""
        return all(process.is_alive() for process in self.crew)

    def said(self, what: str, process: ForkServerProcess | None = None) -> list[str]:
        """The lines of the log that begin with *what*, without it."""
        lines = [line.split(" ", 2) for line in self.log.read_text().splitlines()]
        return [
            rest[-1]
            for pid, *rest in lines
            if rest[0] == what and (process is None or int(pid) == process.pid)
        ]

    def close(self) -> None:
        for process in self._all:
            process.kill()
            process.join()
