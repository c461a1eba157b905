"""Whoever breaks things."""

import time
from collections.abc import Callable
from random import Random

from headway.store import sessions
from headway.store.engine import TRANSIENT, Store
from headway.torture.crew import SCHEDULER, WORKER, Crew, Member
from headway.torture.evidence import Notebook
from headway.torture.operator import Operator
from headway.torture.plan import Fault
from headway.torture.postgres import PostgresServer
from headway.wakeups import Role

AWAY = 0.3
SETTLED = 5.0


class Nemesis:
    """Strikes when it is told to, at somebody drawn by chance."""

    def __init__(
        self,
        crew: Crew,
        store: Store,
        server: PostgresServer | None,
        chance: Random,
        notes: Notebook,
        operator: Operator,
    ) -> None:
        self.count = 0
        self._crew = crew
        self._store = store
        self._server = server
        self._chance = chance
        self._notes = notes
        self._operator = operator
        self._strikes: dict[Fault, Callable[[], None]] = {
            Fault.KILL_WORKER: lambda: self._on_somebody(self._crew.kill, WORKER),
            Fault.KILL_SCHEDULER: lambda: self._on_somebody(self._crew.kill, SCHEDULER),
            Fault.LONG_STOP: lambda: self._stop(3 * crew.deployment.plan.lease),
            Fault.SHORT_STOP: lambda: self._stop(crew.deployment.plan.lease / 4),
            Fault.TERMINATE: self._terminate,
            Fault.RESTART_FAST: lambda: self._restart("fast"),
            Fault.RESTART_IMMEDIATE: lambda: self._restart("immediate"),
            Fault.KILL_DATABASE: lambda: self._restart(None),
            Fault.END_SESSION: self._end_session,
            Fault.CHANGE_GROUP: operator.change,
        }

    def strike(self, fault: Fault) -> None:
        """Do it, and note it."""
        self._notes.note("fault", fault)
        self._strikes[fault]()
        self.count += 1

    def tend(self) -> None:
        """What has to be seen to all the time."""
        self._crew.resume()
        self._crew.replace_dead()
        self._crew.reap()
        self._operator.tend()

    def relent(self) -> None:
        """Let everybody go on."""
        self._crew.resume(everybody=True)
        self._operator.relent()

    def _on_somebody(self, act: Callable[[Member], None], roles: tuple[Role, ...] = ()) -> None:
        awake = [
            one
            for one in self._crew.members
            if not one.stopped_until and set(roles) <= set(one.roles)
        ]
        if awake:
            act(self._chance.choice(awake))

    def _terminate(self) -> None:
        """Somebody who has been there for a while: before that, it cannot know the signal."""
        settled = time.time() - SETTLED
        self._on_somebody(
            lambda member: self._crew.terminate(member) if member.since < settled else None
        )

    def _stop(self, seconds: float) -> None:
        self._on_somebody(lambda member: self._crew.stop(member, seconds))

    def _restart(self, mode: str | None) -> None:
        assert self._server is not None
        self._notes.note("down")
        if mode is None:
            self._server.kill()
        else:
            self._server.stop(mode)
        time.sleep(AWAY)
        self._start(self._server)
        self._notes.note("up")

    def _start(self, server: PostgresServer) -> None:
        for _ in range(50):
            try:
                server.start(durable=True)
            except RuntimeError:  # the children of a killed postmaster are still ending
                time.sleep(0.2)
                continue
            return
        server.start(durable=True)

    def _end_session(self) -> None:
        try:
            with self._store.writing() as tx:
                sessions.end_any(tx)
        except TRANSIENT:
            return
