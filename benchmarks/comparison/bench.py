"""What every part needs: a server, fresh databases on it, and somewhere to put the results."""

import itertools
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from benchmarks.comparison.environments import PeerUnavailable, command_of
from benchmarks.comparison.measurements import Results, Row
from benchmarks.comparison.processes import Driver, Said, driver, told_by
from benchmarks.comparison.progress import say
from benchmarks.comparison.subjects import HEADWAY, Subject
from headway.torture.postgres import PostgresServer

NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Sizes:
    """How much is measured: `make bench` in a quarter of an hour, `make bench-full` in an hour."""

    repetitions: int = 3
    jobs: int = 20_000
    slow_jobs: int = 2_000
    celery_jobs: int = 1000
    samples: int = 200
    schedules: Sequence[int] = (1_000, 10_000, 100_000)
    children: int = 10_000
    aged: int = 200_000
    snapshot_age: float = 60.0
    idle_seconds: float = 30.0


FULL = Sizes(slow_jobs=20_000, schedules=(1_000, 10_000, 100_000, 1_000_000), aged=2_000_000)


@dataclass
class Bench:
    """One run of the benchmark; with *only*, of some of the software."""

    server: PostgresServer
    sizes: Sizes = Sizes()
    only: Collection[str] = ()
    results: Results = field(default_factory=Results)
    missing: dict[str, str] = field(default_factory=dict)
    _warming_up: bool = field(default=False, init=False)

    def present(self, subjects: Sequence[Subject]) -> list[Subject]:
        """Those that are wanted and can be installed; what cannot be is said once."""
        return [subject for subject in subjects if self._is_there(subject)]

    def in_turn(
        self, title: str, subjects: Sequence[Subject], *, warm_ups: int = 0
    ) -> Iterator[Subject]:
        """Each subject as often as is repeated, taking turns; whoever is first changes."""
        there = self.present(subjects)
        for number in range(-warm_ups, self.sizes.repetitions):
            self._warming_up = number < 0
            for place in range(len(there)):
                subject = there[(number + place) % len(there)]
                if not self._warming_up:
                    say(f"{title}: {subject.name}, {number + 1} of {self.sizes.repetitions}")
                yield subject

    def note(self, row: Row, subject: Subject, value: float) -> None:
        """Keep one measurement, unless it was to warm up, and tell whoever waits."""
        if not self._warming_up:
            self.results.add(row, subject.name, value)
            say(f"    {row.title}: {value:,.2f} {row.unit}")

    def told(self, subject: Subject, action: str, **options: Any) -> Said:
        """What the driver of *subject* says to one action."""
        return told_by(command(subject), action, options)

    def driver(
        self, subject: Subject, action: str, **options: Any
    ) -> AbstractContextManager[Driver]:
        """A process of *subject*, for as long as it is needed."""
        return driver(command(subject), action, options)

    @contextmanager
    def database(self, subject: Subject) -> Iterator[str]:
        """The address of an empty database, which is gone afterwards."""
        name = f"bench_{next(NUMBERS)}"
        if subject.on_sqlite:
            with tempfile.TemporaryDirectory() as folder:
                yield f"sqlite:///{folder}/{name}.db"
            return
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
            try:
                yield self.server.url(name)
            finally:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _is_there(self, subject: Subject) -> bool:
        if subject.software in self.missing or (self.only and subject.software not in self.only):
            return False
        try:
            command(subject)
        except PeerUnavailable as error:
            self.missing[subject.software] = str(error)
            say(str(error))
            return False
        return True


def command(subject: Subject) -> Sequence[str]:
    """How to run the driver of *subject*."""
    if subject.software == HEADWAY:
        return [sys.executable, "-m", "benchmarks.comparison.drive_headway"]
    return command_of(subject.software)
