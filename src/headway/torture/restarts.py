"""Restarts of the database, and what begins beside each: processes, and jobs that activate."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from headway.definition.app import Headway
from headway.errors import HeadwayError
from headway.store.engine import TRANSIENT
from headway.torture.application import Siren, ready_file, signal_of
from headway.torture.crew import Crew, Member
from headway.torture.evidence import Notebook
from headway.torture.plan import Beside, Fault, Moment
from headway.torture.postgres import PostgresServer

LOOK = 0.02
READY_WITHIN = 4.0
# The outage must stay shorter than a lease: after a longer one, live workers lose their runs.
MET_WITHIN = 1 / 6  # of a lease

MODES: dict[Fault, str | None] = {
    Fault.RESTART_FAST: "fast",
    Fault.RESTART_IMMEDIATE: "immediate",
    Fault.KILL_DATABASE: None,
}


class DatabaseRestarts:
    """Restarts the server, with what the plan has begin beside it; *tend* is called in between.

    Processes that shall start at a moment of the restart wait for its file with everything
    imported, and so do jobs that shall activate: how fast the machine is does not decide what they
    meet.
    """

    def __init__(
        self,
        server: PostgresServer,
        crew: Crew,
        hw: Headway,
        notes: Notebook,
        tend: Callable[[], None],
        ready_within: float = READY_WITHIN,
    ) -> None:
        plan = crew.deployment.plan
        self._server = server
        self._crew = crew
        self._hw = hw
        self._notes = notes
        self._tend = tend
        self._ready_within = ready_within
        self._met_within = plan.lease * MET_WITHIN
        self._chance = Random(f"{plan.seed}:restarts")
        self._plans = plan.beside_restarts()
        self._number = 0

    def restart(self, fault: Fault) -> None:
        """Stop or kill the server, and start it when the processes and jobs beside it met that."""
        beside, number = next(self._plans), self._number
        self._number += 1
        fresh = self._replace_for(beside, number)
        late = [member for member, moment in fresh.items() if moment is Moment.AWAY]
        sirens = self._begin_sirens(beside, number)
        _wait_until(
            lambda: self._are_ready(fresh, sirens), self._ready_within, meanwhile=self._tend
        )
        self._signal(number, Moment.BEFORE)
        time.sleep(beside.lead)
        self._notes.note("down")
        self._server.withhold_commits()
        self._signal(number, Moment.UNANSWERED)
        time.sleep(beside.unanswered)
        self._take_down(MODES[fault])
        self._signal(number, Moment.AWAY)
        _wait_until(lambda: self._have_met_it(late), self._met_within, meanwhile=self._crew.resume)
        self._server.answer_commits()
        self._start()
        self._notes.note("up")

    def _file(self, number: int, moment: Moment) -> Path:
        return signal_of(self._crew.deployment.folder, number, moment)

    def _signal(self, number: int, moment: Moment) -> None:
        self._file(number, moment).touch()

    def _replace_for(self, beside: Beside, number: int) -> dict[Member, Moment]:
        """Replace processes by others that start at a moment of the restart."""
        fresh: dict[Member, Moment] = {}
        for role, moment in beside.starts:
            awake = [one for one in self._crew.awake((role,)) if one not in fresh]
            if awake:
                replaced = self._chance.choice(awake)
                fresh[self._crew.kill(replaced, self._file(number, moment))] = moment
        return fresh

    def _begin_sirens(self, beside: Beside, restart: int) -> list[Path]:
        """Queue the jobs that wait for their moment; returns the files that say that they run."""
        asked = []
        for place, moment in enumerate(beside.sirens):
            number = f"siren-{restart}-{place}"
            siren = Siren(number=number, restart=restart, moment=moment)
            try:
                entry = self._hw.trigger(f"siren-{place}", siren)
            except (*TRANSIENT, HeadwayError):
                self._notes.note("unanswered", number)
                continue
            self._notes.note("accepted", number, entry)
            asked.append(ready_file(self._crew.deployment.folder, number))
        return asked

    def _are_ready(self, fresh: Iterable[Member], sirens: Iterable[Path]) -> bool:
        return self._have_noted(fresh, "at_gate") and all(one.exists() for one in sirens)

    def _have_met_it(self, starting: Iterable[Member]) -> bool:
        return self._have_noted(starting, "waits")

    def _have_noted(self, members: Iterable[Member], what: str) -> bool:
        return all(not one.process.is_alive() or self._crew.has_noted(one, what) for one in members)

    def _take_down(self, mode: str | None) -> None:
        if mode is None:
            self._server.kill()
        else:
            self._server.stop(mode)

    def _start(self) -> None:
        for _ in range(50):
            try:
                self._server.start(durable=True)
            except RuntimeError:  # the children of a killed postmaster are still ending
                time.sleep(0.2)
                continue
            return
        self._server.start(durable=True)


def _wait_until(
    condition: Callable[[], bool], seconds: float, meanwhile: Callable[[], None]
) -> None:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        meanwhile()
        time.sleep(LOOK)
