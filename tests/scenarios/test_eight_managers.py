"""Many managers on one database, killed and stopped at random: every occurrence once, none twice.

The entries are compared with an expansion of the schedules that headway had no part in. Catching
up makes that exact on any machine: what a slow one cannot do in time it does afterwards, and the
test waits until all of it is done.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random, SystemRandom
from threading import Event
from typing import NamedTuple

import pytest

from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.migrate import migrate
from tests.builders import eventually
from tests.scenarios.fleet import (
    Fleet,
    manage_and_count,
    manage_and_stop,
    manage_without_lock,
    work,
)
from tests.scenarios.occurrences import Job, Ledger

pytestmark = pytest.mark.long

# One who follows asks every two seconds, and the database ends a stopped leader's session after
# five; counted, because the seconds that a busy machine takes for all the rest are not headway's.
MOST_IN_VAIN = 4
LONGEST_STOP = 8.0
STUCK = 60.0
# What the database said last may be lost with the connection, if that is found closed first.
ENDED = (
    "terminating connection due to idle-in-transaction timeout",
    "server closed the connection unexpectedly",
)


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(database_url, tmp_path)
    yield fleet
    fleet.close()


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    migrate(store)
    yield store
    store.close()


on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def some_jobs(count: int, *, mostly: int = 5) -> list[Job]:
    """Of one to five seconds, half by the clock and half at a fixed rate; most are slow ones."""
    quick = count // 5
    seconds = [1 + number % 5 for number in range(quick)] + [mostly] * (count - quick)
    return [Job(f"job-{number}", one, number % 2 == 0) for number, one in enumerate(seconds)]


class Trouble(NamedTuple):
    """What is done to the managers, and after how many seconds."""

    after: float
    act: Callable[[], None]


def random_troubles(
    fleet: Fleet, chance: Random, seconds: int, kills: int, stops: int
) -> list[Trouble]:
    moments = [chance.uniform(0, seconds) for _ in range(kills)]
    troubles = [Trouble(moment, lambda: fleet.kill_one(chance)) for moment in moments]
    for _ in range(stops):
        begins = chance.uniform(0, seconds)
        troubles.append(Trouble(begins, lambda: fleet.stop_one(chance)))
        troubles.append(Trouble(begins + chance.uniform(0.5, LONGEST_STOP), fleet.wake_one))
    return sorted(troubles, key=lambda trouble: trouble.after)


def run_through(ledger: Ledger, troubles: list[Trouble]) -> None:
    """Cause the troubles, each at its moment, and look at the queue in between."""
    began, pause = time.monotonic(), Event()
    for trouble in troubles:
        while (left := began + trouble.after - time.monotonic()) > 0:
            assert ledger.queued_twice() == []
            pause.wait(min(left, 0.2))
        trouble.act()


def wait_until_done(ledger: Ledger, fleet: Fleet) -> None:
    """As long as something gets done; that nothing does any more is the failure."""
    ended, since, pause = -1, time.monotonic(), Event()
    while (unfinished := ledger.unfinished()) or ledger.now() < ledger.until:
        assert ledger.queued_twice() == []
        if ledger.ended() != ended:
            ended, since = ledger.ended(), time.monotonic()
        stuck = time.monotonic() - since > STUCK
        assert not stuck, f"{unfinished} jobs are stuck\n{fleet.log.read_text()}"
        pause.wait(0.2)


def survive(
    fleet: Fleet, store: Store, jobs: list[Job], seconds: int, kills: int, stops: int = 0
) -> Ledger:
    """Let the fleet have its troubles while the schedules run, and compare what it has done."""
    seed = SystemRandom().randrange(10**9)
    ledger = Ledger(store, jobs, seconds)
    run_through(ledger, random_troubles(fleet, Random(seed), seconds, kills, stops))
    wait_until_done(ledger, fleet)
    assert fleet.all_alive(), fleet.log.read_text()
    entries = ledger.entries()
    missing, too_many = ledger.expected - entries, entries - ledger.expected
    assert not missing and not too_many, (
        f"seed {seed}: {missing.total()} missing, for example {missing.most_common(5)}; "
        f"{too_many.total()} too many, for example {too_many.most_common(5)}"
    )
    return ledger


@pytest.mark.story(6, 20)
@on_postgresql
@pytest.mark.timeout(600)
def test_eight_managers_on_postgresql_for_a_minute(fleet: Fleet, store: Store) -> None:
    fleet.start(work)
    fleet.start_crew(8)

    ledger = survive(fleet, store, some_jobs(2000), seconds=60, kills=55, stops=6)

    assert ledger.expected.total() >= 20_000


@pytest.mark.story(26)
@on_postgresql
@pytest.mark.timeout(300)
def test_without_the_lock_the_rows_and_the_index_hold_the_line(fleet: Fleet, store: Store) -> None:
    fleet.start(work)
    fleet.start_crew(4, manage_without_lock)

    with store.leading(Lock.MANAGE, seconds=600) as leader:
        assert leader is not None, "whoever asks for the lock now does not get it"
        survive(fleet, store, some_jobs(300, mostly=2), seconds=10, kills=8, stops=2)


@on_sqlite
@pytest.mark.timeout(300)
def test_two_managers_on_one_sqlite_file(fleet: Fleet, store: Store) -> None:
    fleet.start(work)
    fleet.start_crew(2)

    survive(fleet, store, some_jobs(100, mostly=2), seconds=10, kills=10)


@pytest.mark.story(27)
@on_postgresql
def test_a_leader_stopped_in_its_cycle_is_replaced_in_time_and_cannot_write(
    fleet: Fleet, store: Store
) -> None:
    ledger = Ledger(store, [Job("job", 1, by_clock=False)], seconds=1)
    zombie = fleet.start(manage_and_stop)
    eventually(lambda: bool(fleet.said("stopped")))

    fleet.start(manage_and_count)
    eventually(lambda: ledger.first_entry_at() is not None)

    assert len(fleet.said("followed")) <= MOST_IN_VAIN
    before = ledger.entries()
    fleet.signal(zombie, signal.SIGCONT)
    eventually(lambda: bool(fleet.said("failed", zombie)))
    assert any(told in fleet.said("failed", zombie)[0] for told in ENDED)
    assert ledger.entries() == before
