"""Whoever breaks things."""

import time
from collections.abc import Callable
from functools import partial
from random import Random

from headway.store import sessions
from headway.store.engine import TRANSIENT, Store
from headway.torture.crew import SCHEDULER, WORKER, Crew, Member
from headway.torture.evidence import Notebook
from headway.torture.operator import Operator
from headway.torture.plan import Fault
from headway.torture.postgres import PostgresServer
from headway.torture.restarts import MODES, DatabaseRestarts
from headway.wakeups import Role

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
        self._chance = chance
        self._notes = notes
        self._operator = operator
        self._restarts = (
            DatabaseRestarts(server, crew, operator.hw, notes, self.tend) if server else None
        )
        self._strikes: dict[Fault, Callable[[], None]] = {
            Fault.KILL_WORKER: lambda: self._on_somebody(self._kill, WORKER),
            Fault.KILL_SCHEDULER: lambda: self._on_somebody(self._kill, SCHEDULER),
            Fault.LONG_STOP: lambda: self._stop(3 * crew.deployment.plan.lease),
            Fault.SHORT_STOP: lambda: self._stop(crew.deployment.plan.lease / 4),
            Fault.TERMINATE: self._terminate,
            **{fault: partial(self._restart, fault) for fault in MODES},
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
        if awake := self._crew.awake(roles):
            act(self._chance.choice(awake))

    def _kill(self, member: Member) -> None:
        self._crew.kill(member)

    def _terminate(self) -> None:
        """Somebody who has been there for a while: before that, it cannot know the signal."""
        settled = time.time() - SETTLED
        self._on_somebody(
            lambda member: self._crew.terminate(member) if member.since < settled else None
        )

    def _stop(self, seconds: float) -> None:
        self._on_somebody(lambda member: self._crew.stop(member, seconds))

    def _restart(self, fault: Fault) -> None:
        assert self._restarts is not None
        self._restarts.restart(fault)

    def _end_session(self) -> None:
        try:
            with self._store.writing() as tx:
                sessions.end_any(tx)
        except TRANSIENT:
            return
