"""Two thousand jobs on Celery while its processes are killed and its broker is restarted.

Two witnesses are asked about the limits: one looks at the database from outside while everything
runs, the other is what the jobs themselves wrote down.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random, SystemRandom

import pytest
from sqlalchemy import select

from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.store import work_queue
from headway.store.tables import manifest, manifest_group
from tests.brokers import Broker
from tests.postgres_server import PostgresUnavailable, private_server
from tests.scenarios.bodies import NEVER, Body, most_at_once
from tests.scenarios.limited import Watch
from tests.servers.celery.conftest import brought_up
from tests.servers.celery.site import Site

pytestmark = pytest.mark.long

SHARES = {2: 200, 5: 600, 8: 1200}
CAPS, JOBS = tuple(SHARES), sum(SHARES.values())
GLOBAL_CAP = 14
WORKERS, CHILDREN = 2, 3
SETTINGS = {
    "HEADWAY_MAX_ACTIVE_JOBS": str(GLOBAL_CAP),
    "HEADWAY_MAX_CRASHES": "1000",  # whoever is killed here has done nothing wrong
    "SCENARIO_UNCLAIMED": "5",
}
STUCK = 60.0
PAUSE = 0.1
COMPLETED, HANDED_BACK = ExecutionState.COMPLETED, ExecutionState.HANDED_BACK


class Run:
    """All jobs, queued for groups with caps, and the workers that are killed meanwhile."""

    def __init__(self, site: Site, chance: Random) -> None:
        self.site = site
        self.chance = chance
        self.service = site.headway()
        self.workers = [self._worker() for _ in range(WORKERS)]
        site.await_owners(WORKERS * CHILDREN)
        site.await_declared(*(f"at-most-{cap}-{number}" for cap in CAPS for number in (0, 1)))
        self.cap_of = self._queue()
        self.killed: Counter[str] = Counter()

    def _worker(self) -> subprocess.Popen[bytes]:
        return self.site.worker(concurrency=CHILDREN)

    def _queue(self) -> dict[int, int]:
        columns = select(
            manifest_group.c.max_active_jobs,
            manifest.c.id,
            manifest.c.group_id,
            manifest.c.workflow,
        ).join_from(manifest, manifest_group)
        cap_of: dict[int, int] = {}
        entries: list[NewEntry] = []
        with self.site.store.writing() as tx:
            rows = tx.connection.execute(columns.where(manifest_group.c.name.like("at-most-%")))
            manifests = rows.all()
            caps = [cap for cap, share in SHARES.items() for _ in range(share)]
            self.chance.shuffle(caps)
            for number, cap in enumerate(caps):
                chosen = self.chance.choice([one for one in manifests if one[0] == cap])
                cap_of[number] = cap
                entry = NewEntry(
                    chosen.workflow,
                    Source.TRIGGER,
                    str(number),
                    input_type="int",
                    priority=self.chance.randrange(32),
                    manifest_id=chosen.id,
                    group_id=chosen.group_id,
                )
                entries.append(entry)
            work_queue.enqueue(tx, entries)
        return cap_of

    def kill_child(self) -> None:
        """One that has a lease: those of a worker that has just been started may have none yet,
        and get none if the others have done everything by then."""
        children: list[int] = []

        def some_are_up() -> bool:
            owners = self.site.owners()
            ready = filter(self.site.is_ready, self.workers)
            all_of_them = [pid for one in ready for pid in self.site.children(one)]
            children[:] = [pid for pid in all_of_them if pid in owners]
            return bool(children)

        self.site.wait(some_are_up)
        self.site.kill(self.chance.choice(children))
        self.killed["child"] += 1

    def kill_parent(self) -> None:
        place = self.chance.randrange(len(self.workers))
        children = self.site.children(self.workers[place])
        self.site.kill(self.workers[place].pid)
        self.workers[place].wait()
        self.site.note_deaths(children)
        self.workers[place] = self._worker()
        self.killed["parent"] += 1

    def restart_broker(self) -> None:
        self.site.broker.kill()
        self.site.broker.start()
        self.killed["broker"] += 1

    def through(self) -> None:
        """Until all have ended; something is killed whenever so many have."""
        plan = {
            **{JOBS * part // 20: self.kill_child for part in (1, 4, 5, 8, 12, 13, 16, 17)},
            JOBS * 2 // 20: self.kill_parent,
            JOBS * 10 // 20: self.kill_parent,
            JOBS * 6 // 20: self.restart_broker,
            JOBS * 14 // 20: self.restart_broker,
        }
        moments = sorted(plan)
        done, since = 0, time.monotonic()
        while done < JOBS:
            while moments and moments[0] <= done:
                plan[moments.pop(0)]()
                since = time.monotonic()
            now = self.site.completed()
            since = since if now == done else time.monotonic()
            done = now
            stuck = time.monotonic() - since > STUCK
            assert not stuck, f"stuck after {done}: {self.site.states()}\n{self.site.logs()}"
            time.sleep(PAUSE)


@pytest.fixture(params=["redis", "rabbitmq"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """On a broker and a database of its own: the one is killed, the other has much to do."""
    with ExitStack() as closing:
        try:
            database = closing.enter_context(private_server())
        except PostgresUnavailable as reason:
            pytest.skip(str(reason))
        broker: Broker = closing.enter_context(brought_up(request.param))
        site = Site(database.url(), broker, tmp_path, **SETTINGS)
        closing.callback(site.close)
        yield site


@pytest.mark.story(31, 32)
@pytest.mark.timeout(400)
def test_two_thousand_jobs_while_children_parents_and_the_broker_are_killed(site: Site) -> None:
    seed = SystemRandom().randrange(10**9)
    run, began = Run(site, Random(seed)), time.monotonic()
    with Watch(site.store) as watch:
        run.through()
    bodies = site.bodies()
    most = {cap: most_at_once(one for one in bodies if run.cap_of[one.job] == cap) for cap in CAPS}
    tell(
        f"seed {seed}: {JOBS} jobs, {len(bodies)} bodies in {time.monotonic() - began:.0f} s",
        f"killed {dict(run.killed)}; ended as {dict(site.states())}",
        f"most executions {dict(watch.most)}, in all {watch.most_in_all}; {watch.looks} looks",
        f"most bodies {most}, in all {most_at_once(bodies)}",
    )

    assert_each_ended_once(site, run, bodies)
    assert all(most[cap] <= cap and watch.most[cap] <= cap for cap in CAPS)
    assert max(watch.most_in_all, most_at_once(bodies)) <= GLOBAL_CAP
    assert watch.most == Counter({cap: cap for cap in CAPS}), "every cap was reached"
    assert (run.killed["parent"], run.killed["broker"]) == (2, 2) and run.killed["child"] >= 5
    assert run.service.poll() is None, site.logs()
    assert all(worker.poll() is None for worker in run.workers), site.logs()


def assert_each_ended_once(site: Site, run: Run, bodies: list[Body]) -> None:
    """One completed execution for each job; a body began again only where its process died."""
    executions = site.executions()
    completed = {one.id: int(one.input) for one in executions if one.state is COMPLETED}
    assert sorted(completed.values()) == list(run.cap_of)
    others = [one for one in executions if one.id not in completed]
    assert all(one.lost or one.state is HANDED_BACK for one in others), site.states()
    assert site.history.dead_letters.awaiting() == []
    recorded = [body for body in bodies if body.execution_id in completed]
    assert Counter(body.execution_id for body in recorded) == Counter(list(completed))
    assert all(body.ended != NEVER for body in recorded)
    assert [one for one in bodies if one.execution_id not in completed and not one.lost] == []


def tell(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


MINUTE = 60.0
WITHIN = 10.0


@pytest.mark.story(32)
@pytest.mark.timeout(400)
def test_a_broker_that_is_away_for_a_minute_ends_no_process_and_loses_nothing(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Both kinds at the same time, for a minute is long."""
    with ExitStack() as closing:
        sites: dict[str, Site] = {}
        for kind, url in (("redis", "sqlite_url"), ("rabbitmq", "postgres_url")):
            (tmp_path / kind).mkdir()
            broker = closing.enter_context(brought_up(kind))
            site = Site(request.getfixturevalue(url), broker, tmp_path / kind)
            closing.callback(site.close)
            sites[kind] = site
        for site in sites.values():
            site.headway()
            site.worker(concurrency=1)
        for site in sites.values():
            site.await_owners(1)
            site.enqueue("quick", 1, 2)
            site.await_completed(2)

        for site in sites.values():
            site.broker.kill()
            site.enqueue("quick", *range(3, 23))
        time.sleep(MINUTE)
        waiting = {kind: site.completed() for kind, site in sites.items()}
        queued = {kind: len(site.history.queue.all()) for kind, site in sites.items()}

        for kind, site in sites.items():
            site.broker.start()
            back = time.monotonic()
            site.await_completed(3)
            seconds = time.monotonic() - back
            tell(f"{kind}: work goes on {seconds:.1f} s after the broker is back")
            assert seconds < WITHIN, site.logs()
        for site in sites.values():
            site.await_completed(22)
            assert site.states()[ExecutionState.FAILED] == 0
            assert [process.poll() for process in site.processes] == [None] * 2, site.logs()
            assert sorted(body.job for body in site.bodies()) == list(range(1, 23))
        assert waiting == {"redis": 2, "rabbitmq": 2}
        assert queued == {"redis": 20, "rabbitmq": 20}, "where limits and cancellation reach it"
