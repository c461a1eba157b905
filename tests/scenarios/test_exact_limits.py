"""Eight dispatchers and thirty-two workers, killed at random: no cap is exceeded at any instant.

Two witnesses are asked. One looks at the database from outside while everything runs; the other is
what the workers themselves wrote down, each start and each end, read when all is over.

The workers are eight processes of four. With a process for each, a job takes 47 ms of a processor
instead of 16, for every hint wakes whoever is idle: eight minutes for all on two cores.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from threading import Event

import pytest

from headway.domain.execution import ExecutionState
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.postgres_server import PostgresUnavailable, private_server
from tests.scenarios.bodies import NEVER, Body, most_at_once, read_diaries
from tests.scenarios.fleet import Fleet
from tests.scenarios.limited import (
    CAPS,
    GLOBAL_CAP,
    SLOTS,
    Watch,
    Workload,
    dispatch,
    dispatch_without_lock,
    run_long_jobs,
    run_short_jobs,
)

pytestmark = pytest.mark.long

DISPATCHERS = 8
WORKERS = 32
TWENTY_THOUSAND = {1: 250, 2: 1000, 5: 3800, 8: 6000, 13: 8950}
A_FEW_HUNDRED = {1: 10, 2: 30, 5: 80, 8: 130, 13: 150}
STUCK = 60.0
PAUSE = 0.05


@pytest.fixture
def url() -> Iterator[str]:
    """A server of this test's own: so many processes leave no connections to others."""
    try:
        with private_server() as server:
            yield server.url()
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store(url)
    migrate(store)
    yield store
    store.close()


@pytest.fixture
def dispatchers(url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(url, tmp_path)
    yield fleet
    fleet.close()


@pytest.fixture
def workers(url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(url, tmp_path)
    yield fleet
    fleet.close()


@dataclass(frozen=True)
class Seen:
    """What the two witnesses saw of one run."""

    watch: Watch
    bodies: list[Body]
    cap_of: Mapping[int, int]

    @property
    def most_bodies(self) -> Counter[int]:
        """How many bodies of each cap's group ran at the worst moment."""
        groups: dict[int, list[Body]] = {cap: [] for cap in CAPS}
        for body in self.bodies:
            groups[self.cap_of[body.job]].append(body)
        return Counter({cap: most_at_once(found) for cap, found in groups.items()})

    def excesses(self) -> list[str]:
        """Every limit that was exceeded, and who saw it."""
        witnesses = {
            "executions": (self.watch.most, self.watch.most_in_all),
            "bodies": (self.most_bodies, most_at_once(self.bodies)),
        }
        return [
            f"{most[cap]} {what} with a cap of {cap}"
            for what, (most, _) in witnesses.items()
            for cap in CAPS
            if most[cap] > cap
        ] + [
            f"{in_all} {what} in all with a cap of {GLOBAL_CAP}"
            for what, (_, in_all) in witnesses.items()
            if in_all > GLOBAL_CAP
        ]


def run_through(
    load: Workload, dispatchers: Fleet, workers: Fleet, chance: Random, kills: tuple[int, int]
) -> None:
    """Until all jobs have ended, killing somebody whenever a random number of them has."""
    jobs, pause = len(load.cap_of), Event()
    victims = [dispatchers] * kills[0] + [workers] * kills[1]
    chance.shuffle(victims)
    moments = sorted(chance.uniform(0, jobs * 0.9) for _ in victims)
    progress, since = jobs, time.monotonic()
    while left := load.feed():
        while moments and moments[0] <= jobs - left:
            moments.pop(0)
            victims.pop().kill_one(chance)
        if left != progress:
            progress, since = left, time.monotonic()
        stuck = time.monotonic() - since > STUCK
        assert not stuck, f"{left} jobs are stuck\n{workers.log.read_text()}"
        pause.wait(PAUSE)


def observe(
    store: Store,
    jobs: Mapping[int, int],
    dispatchers: Fleet,
    workers: Fleet,
    kills: tuple[int, int],
) -> Seen:
    """Let all the jobs run, with these many kills of dispatchers and of workers."""
    seed = SystemRandom().randrange(10**9)
    tell(f"seed {seed}")
    chance, began = Random(seed), time.monotonic()
    load = Workload(store, jobs, chance)
    with Watch(store) as watch:
        run_through(load, dispatchers, workers, chance, kills)
    seen = Seen(watch, read_diaries(workers.log.parent, workers.kills), load.cap_of)
    tell(
        f"{len(load.cap_of)} jobs, {len(seen.bodies)} bodies in {time.monotonic() - began:.0f} s",
        f"killed {len(dispatchers.kills)} dispatchers, {len(workers.kills)} processes of workers",
        f"most executions {dict(watch.most)}, in all {watch.most_in_all}; {watch.looks} looks",
        f"most bodies {dict(seen.most_bodies)}, in all {most_at_once(seen.bodies)}",
    )
    return seen


def tell(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def assert_each_ended_once(store: Store, seen: Seen) -> None:
    """One completed execution per job; a body began again only where its process was killed."""
    history = History(store)
    executions = history.executions.all()
    completed = {
        one.id: int(one.input) for one in executions if one.state is ExecutionState.COMPLETED
    }
    assert sorted(completed.values()) == list(seen.cap_of)
    others = [one for one in executions if one.id not in completed and not one.lost]
    # A worker whose lease is over hands back what it has not begun: no body of them is seen below.
    assert {one.state for one in others} <= {ExecutionState.HANDED_BACK}
    assert history.dead_letters.awaiting() == []
    recorded = [body for body in seen.bodies if body.execution_id in completed]
    assert Counter(body.execution_id for body in recorded) == Counter(list(completed))
    assert all(body.ended != NEVER for body in recorded)
    assert [one for one in seen.bodies if one.execution_id not in completed and not one.lost] == []


@pytest.mark.story(18)
@pytest.mark.timeout(1200)
def test_no_cap_is_exceeded_while_dispatchers_and_workers_are_killed(
    store: Store, dispatchers: Fleet, workers: Fleet
) -> None:
    dispatchers.start_crew(DISPATCHERS, dispatch)
    workers.start_crew(WORKERS // SLOTS, run_short_jobs)

    seen = observe(store, TWENTY_THOUSAND, dispatchers, workers, kills=(50, 100))

    assert seen.excesses() == []
    assert seen.watch.most == Counter({cap: cap for cap in CAPS}), "every cap was reached"
    assert seen.watch.most_in_all == GLOBAL_CAP
    assert_each_ended_once(store, seen)
    assert (len(dispatchers.kills), len(workers.kills)) == (50, 100)
    assert dispatchers.all_alive() and workers.all_alive(), workers.log.read_text()


@pytest.mark.story(18)
@pytest.mark.timeout(300)
def test_without_the_lock_the_same_run_exceeds_a_cap(
    store: Store, dispatchers: Fleet, workers: Fleet
) -> None:
    dispatchers.start_crew(DISPATCHERS, dispatch_without_lock)
    workers.start_crew(WORKERS // SLOTS, run_long_jobs)

    seen = observe(store, A_FEW_HUNDRED, dispatchers, workers, kills=(0, 0))

    excesses = seen.excesses()
    assert any("executions" in one for one in excesses), "seen from outside"
    assert any("bodies" in one for one in excesses), "and in what the workers wrote"
