"""A broker that ends and comes back ten times while jobs come and go: nobody ends or stays deaf."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import select

from headway.domain.execution import ExecutionState
from headway.store.tables import executions
from tests.servers.celery.conftest import brought_up
from tests.servers.celery.site import Site
from tests.servers.celery.test_long_runs import tell

pytestmark = pytest.mark.long

TIMES = 10
WORKERS, CHILDREN = 2, 2
QUEUED, PAUSE = 30, 0.1
IN_BETWEEN = 20
COMPLETED, HANDED_BACK = ExecutionState.COMPLETED, ExecutionState.HANDED_BACK


class Load:
    """Jobs without end: somebody always waits in the queue."""

    def __init__(self, site: Site) -> None:
        self.jobs = 0
        self._site = site
        self._over = Event()
        self._thread = Thread(target=self._feed, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _feed(self) -> None:
        while not self._over.wait(PAUSE):
            missing = range(self.jobs, self.jobs + QUEUED - len(self._site.history.queue.all()))
            self._site.enqueue("quick", *missing)
            self.jobs += len(missing)


class Ears:
    """Which workers have started a job since a moment."""

    def __init__(self, site: Site, workers: list[subprocess.Popen[bytes]]) -> None:
        self._site = site
        self.children = {worker.pid: set(site.children(worker)) for worker in workers}

    def wait(self) -> float:
        """Until each of them has heard of one, and some have ended; returns after how many seconds
        that was."""
        with self._site.store.reading() as tx:
            since = tx.now
        began, ended = time.monotonic(), self._site.completed()
        self._site.wait(lambda: self._hear(since))
        self._site.await_completed(ended + IN_BETWEEN)
        return time.monotonic() - began

    def _hear(self, since: datetime) -> bool:
        statement = select(executions.c.owner).where(executions.c.started_at > since).distinct()
        with self._site.store.reading() as tx:
            owners = set(tx.connection.execute(statement).scalars())
        busy = {pid for pid, owner in self._site.owners().items() if owner in owners}
        return all(busy & children for children in self.children.values())


@pytest.fixture(params=["redis", "rabbitmq"])
def site(request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path) -> Iterator[Site]:
    """On a broker of its own, which may be stopped."""
    with brought_up(request.param) as broker:
        site = Site(postgres_url, broker, tmp_path, SCENARIO_UNCLAIMED="5")
        yield site
        site.close()


@pytest.mark.story(32)
@pytest.mark.timeout(300)
def test_a_broker_restarted_ten_times_ends_no_process_and_leaves_no_worker_deaf(
    site: Site,
) -> None:
    service = site.headway()
    workers = [site.worker(concurrency=CHILDREN) for _ in range(WORKERS)]
    site.await_owners(WORKERS * CHILDREN)
    ears, began = Ears(site, workers), time.monotonic()
    waits: list[float] = []
    with Load(site) as load:
        ears.wait()
        for time_after_time in range(TIMES):
            (site.broker.kill if time_after_time % 2 else site.broker.stop)()
            site.wait(lambda: site.log("headway").count("task_server.away") > len(waits))
            site.broker.start()
            waits.append(ears.wait())
    site.await_completed(load.jobs)
    tell(
        f"{load.jobs} jobs in {time.monotonic() - began:.0f} s; ended as {dict(site.states())}",
        f"all workers at work again after {', '.join(f'{one:.1f}' for one in waits)} s",
    )

    assert_each_ended_once(site, load.jobs)
    assert [one.poll() for one in (service, *workers)] == [None] * 3, site.logs()
    assert ears.children == {worker.pid: set(site.children(worker)) for worker in workers}


def assert_each_ended_once(site: Site, jobs: int) -> None:
    """Nobody died, so that nothing may have begun twice or failed."""
    ended = [int(one.input) for one in site.executions() if one.state is COMPLETED]
    assert sorted(ended) == list(range(jobs))
    assert set(site.states()) <= {COMPLETED, HANDED_BACK}, site.states()
    assert Counter(one.job for one in site.bodies()) == Counter(range(jobs))
    assert (site.history.queue.all(), site.history.dead_letters.awaiting()) == ([], [])
