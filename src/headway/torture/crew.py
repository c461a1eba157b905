"""The processes of a tortured deployment: started, killed, stopped and told to end."""

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from headway.observe import Event
from headway.service import Service
from headway.torture import mutations
from headway.torture.application import build
from headway.torture.evidence import Notebook, has_noted
from headway.torture.plan import Plan
from headway.wakeups import Role

SCHEDULER = (Role.MANAGER, Role.DISPATCHER)
WORKER = (Role.WORKER,)
BOTH = (*SCHEDULER, *WORKER)

# Forked from a process that has imported everything: a killed one is replaced at once.
FORKS = multiprocessing.get_context("forkserver")

LOOK_AT_GATE = 0.01

NOTED = frozenset({"loop.failed", "execution.refused", "server.dead", "server.buried"})


@dataclass(frozen=True)
class Deployment:
    """What every process is told."""

    url: str
    folder: Path
    plan: Plan
    mutation: str | None = None


def lineup(plan: Plan) -> list[tuple[Role, ...]]:
    """The roles of everybody who starts.

    >>> len(lineup(Plan(seed=7, minutes=1))), len(lineup(Plan(seed=7, minutes=1, together=True)))
    (10, 10)
    """
    if plan.together:
        return [BOTH] * (plan.schedulers + plan.workers)
    return [SCHEDULER] * plan.schedulers + [WORKER] * plan.workers


def serve(deployment: Deployment, roles: tuple[Role, ...], gate: Path | None = None) -> None:
    """Be one process of the deployment until SIGTERM, or until the torturer is gone.

    The start begins once the file *gate* exists.
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = deployment.folder / "log"
    logging.basicConfig(filename=log, level=logging.WARNING)
    sys.stderr = log.open("a", buffering=1)
    mutations.apply(deployment.mutation)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    service = _started(deployment, roles, gate)
    stop.wait()
    service.stop()
    os._exit(0)


def _started(deployment: Deployment, roles: tuple[Role, ...], gate: Path | None) -> Service:
    """Start once, as every command does: what ends the start ends the process with status 1."""
    notes = Notebook(deployment.folder)
    app = build(deployment.url, deployment.folder, deployment.plan)
    app.observer.subscribe(_noting(notes))
    if gate is not None:
        notes.note("at_gate")
        while not gate.exists():
            time.sleep(LOOK_AT_GATE)
    notes.note("begins")
    service = Service(app, roles)
    service.start()
    return service


def _noting(notes: Notebook) -> Callable[[Event], None]:
    def note(event: Event) -> None:
        if event.name == "manager.cycle":
            notes.note("led")
        elif event.name == "service.started":
            notes.note("serves", event.fields["owner"])
            notes.note("weighed", os.getpid(), weight(os.getpid()))
        elif event.name == "database.waiting":
            notes.note("waits", event.fields["reason"])
        elif event.name in NOTED:
            told = event.fields.get("error") or event.fields.get("owner") or ""
            again = event.fields.get("again", "")
            notes.note(event.name, event.fields.get("execution_id", "-"), told, again)

    return note


def weight(pid: int) -> int:
    """The resident memory of a process, in kB; 0 where the system does not say."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return 0
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")] or ["VmRSS: 0 kB"]
    return int(line.split()[1])


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


@dataclass(eq=False)
class Member:
    """One process, and whether somebody has stopped it."""

    roles: tuple[Role, ...]
    process: ForkServerProcess
    stopped_until: float = 0.0
    since: float = field(default_factory=time.time)

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self.process.pid is not None
        return self.process.pid


@dataclass
class Crew:
    """Everybody on duty; whoever is killed or told to end is replaced."""

    deployment: Deployment
    notes: Notebook
    members: list[Member] = field(default_factory=list)
    leaving: list[Member] = field(default_factory=list)

    def start(self, roles: tuple[Role, ...], gate: Path | None = None) -> Member:
        """Start one more; see :func:`serve`."""
        process = FORKS.Process(target=serve, args=(self.deployment, roles, gate), daemon=True)
        process.start()
        member = Member(roles, process)
        self.members.append(member)
        self.notes.note("started", process.pid, "+".join(roles))
        return member

    def awake(self, roles: Collection[Role] = ()) -> list[Member]:
        """Return the members with all of *roles* that are not stopped."""
        return [
            one for one in self.members if not one.stopped_until and set(roles) <= set(one.roles)
        ]

    def starting(self) -> list[Member]:
        """Return the members that have not come up yet."""
        return [one for one in self.members if not self.has_noted(one, "serves")]

    def has_noted(self, member: Member, what: str) -> bool:
        """Return whether *member* has noted *what*."""
        return has_noted(self.deployment.folder, member.pid, what)

    def kill(self, member: Member, gate: Path | None = None) -> Member:
        """SIGKILL, and another takes its place, which starts once the file *gate* exists."""
        self.members.remove(member)
        member.process.kill()
        member.process.join()
        self._note_end(member)
        return self.start(member.roles, gate)

    def replace_dead(self) -> None:
        """Replace those a job has killed; whoever ends in another way is noted."""
        for member in [one for one in self.members if not one.process.is_alive()]:
            self.members.remove(member)
            self._note_end(member)
            self.start(member.roles)

    def _note_end(self, member: Member) -> None:
        code = member.process.exitcode
        by_signal = code == -signal.SIGKILL
        self.notes.note("killed" if by_signal else "exited", member.pid, code)

    def stop(self, member: Member, seconds: float) -> None:
        """SIGSTOP, until :meth:`resume` finds that the time is over."""
        os.kill(member.pid, signal.SIGSTOP)
        member.stopped_until = time.time() + seconds
        self.notes.note("stopped", member.pid, seconds)

    def resume(self, *, everybody: bool = False) -> None:
        """SIGCONT for those whose time is over."""
        for member in self.members:
            if member.stopped_until and (everybody or member.stopped_until <= time.time()):
                os.kill(member.pid, signal.SIGCONT)
                member.stopped_until = 0.0
                self.notes.note("resumed", member.pid)

    def terminate(self, member: Member) -> None:
        """SIGTERM: it may finish what it runs; another takes its place."""
        self.members.remove(member)
        self.leaving.append(member)
        member.process.terminate()
        self.notes.note("terminated", member.pid)
        self.start(member.roles)

    def reap(self) -> None:
        """Note how those who were told to end did."""
        for member in [one for one in self.leaving if not one.process.is_alive()]:
            self.leaving.remove(member)
            self.notes.note("left", member.pid, member.process.exitcode)

    def weigh(self) -> None:
        """Note how much memory everybody needs now."""
        for member in self.members:
            if member.process.is_alive():
                self.notes.note("weighs", member.pid, weight(member.pid))

    def disband(self) -> None:
        """End everybody."""
        for member in (*self.members, *self.leaving):
            with contextlib.suppress(OSError):
                member.process.kill()
            member.process.join()
        self.members.clear()
        self.leaving.clear()


def preload() -> None:
    """Have the processes' common parent import what they need."""
    FORKS.set_forkserver_preload(["headway.torture.crew", "psycopg"])
