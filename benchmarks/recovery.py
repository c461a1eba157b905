"""How soon the jobs of a killed worker run elsewhere.

    python -m benchmarks.recovery [--kills N] [--lanes N]

A worker that runs 20 jobs gets kill -9 while another one is idle, and the time is taken until all
20 have started there; then that one is killed in its turn, N times with the default lease of 15
seconds and N times with one of 6. Each kill comes at another moment between two beats. The kills
are shared among lanes, deployments of their own on one PostgreSQL server that do not know of each
other: most of the time of each is waiting.

Targets, at the 99th percentile: 20 seconds until all 20 run, 8 with the short lease.
"""

import argparse
import asyncio
import logging
import math
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import psycopg
from sqlalchemy import select

from headway import Headway, Run
from headway.domain.work_queue import NewEntry, Source
from headway.lease import BEATS_PER_LEASE
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import server
from headway.wakeups import Role
from tests.postgres_server import PostgresServer, private_server
from tests.scenarios.fleet import Fleet, serve

JOBS = 20
TARGETS = {15.0: 20.0, 6.0: 8.0}
STUCK = 120.0


async def hold(run: Run) -> None:
    """Say who runs it since when, and never end."""
    line = f"{os.getpid()} {run.execution_id} {time.monotonic_ns()}\n"
    evidence = os.open(os.environ["RECOVERY_EVIDENCE"], os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(evidence, line.encode())
    os.close(evidence)
    await asyncio.Event().wait()


def application(url: str, lease: float) -> Headway:
    logging.disable()  # that its runs are lost is what every one of these processes would tell
    app = Headway(
        "recovery",
        database_url=url,
        server_lease=lease,
        worker_count=JOBS,
        max_active_jobs=None,
        max_crashes=10**6,  # whoever is killed here has done nothing wrong
        default_job_timeout=86_000,
        stale_in_progress_timeout=86_400,
    )
    app.workflow("hold")(hold)
    return app


def dispatch(lease: float, url: str, log: Path) -> None:
    serve(application(url, lease), Role.DISPATCHER, log=log)


def work(lease: float, url: str, log: Path) -> None:
    os.environ["RECOVERY_EVIDENCE"] = str(log.parent / "evidence")
    serve(application(url, lease), Role.WORKER, log=log)


class Lane:
    """A deployment whose busy worker is killed again and again."""

    def __init__(self, url: str, folder: Path, lease: float) -> None:
        self._store = Store(url)
        migrate(self._store)
        self._fleet = Fleet(url, folder)
        self._evidence = folder / "evidence"
        self._lease = lease

    def seconds_of(self, kills: int) -> list[float]:
        """How long it took after each kill until all jobs were running again."""
        self._fleet.start(partial(dispatch, self._lease))
        busy = self._fleet.start(partial(work, self._lease))
        with self._store.writing() as tx:
            work_queue.enqueue(tx, [NewEntry("hold", Source.AD_HOC, "null") for _ in range(JOBS)])
        self._wait_for_starts(busy.pid)
        taken = []
        for _ in range(kills):
            idle = self._fleet.start(partial(work, self._lease))
            self._wait_for_row(idle.pid)
            Event().wait(random.uniform(0, self._lease / BEATS_PER_LEASE))
            killed_at = time.monotonic_ns()
            busy.kill()
            taken.append((self._wait_for_starts(idle.pid) - killed_at) / 1e9)
            busy.join()
            busy = idle
        return taken

    def _wait_for_starts(self, pid: int | None) -> int:
        """When the last of the jobs started in this process."""
        deadline = time.monotonic() + STUCK
        while len(moments := self._starts_of(pid)) < JOBS:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(moments)} of {JOBS} run\n{self._fleet.log.read_text()}")
            Event().wait(0.05)
        return max(moments)

    def _starts_of(self, pid: int | None) -> list[int]:
        if not self._evidence.exists():
            return []
        lines = [line.split() for line in self._evidence.read_text().splitlines()]
        return [int(moment) for process, _, moment in lines if int(process) == pid]

    def _wait_for_row(self, pid: int | None) -> None:
        registered = select(server.c.id).where(server.c.pid == pid)
        while True:
            with self._store.reading() as tx:
                if tx.connection.execute(registered).first() is not None:
                    return
            Event().wait(0.05)

    def close(self) -> None:
        self._fleet.close()
        self._store.close()


def run_lane(postgres: PostgresServer, folder: Path, lease: float, kills: int) -> list[float]:
    name = f"lane_{folder.name}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    lane = Lane(postgres.url(name), folder, lease)
    try:
        return lane.seconds_of(kills)
    finally:
        lane.close()


def measure(postgres: PostgresServer, folder: Path, lease: float, kills: int, lanes: int) -> bool:
    """Print one line; whether it is within the target."""
    shares = [kills // lanes + (number < kills % lanes) for number in range(lanes)]
    places = [folder / f"{lease:.0f}_{number}" for number in range(lanes)]
    for place in places:
        place.mkdir()
    with ThreadPoolExecutor(lanes) as pool:
        found = pool.map(
            lambda place, share: run_lane(postgres, place, lease, share), places, shares
        )
        taken = sorted(second for seconds in found for second in seconds)
    half, most = taken[len(taken) // 2], taken[math.ceil(len(taken) * 0.99) - 1]
    target = TARGETS[lease]
    print(
        f"lease {lease:>2.0f} s: {len(taken)} kills, all {JOBS} jobs run elsewhere after p50 "
        f"{half:.1f} s, p99 {most:.1f} s, max {taken[-1]:.1f} s (target: p99 {target:.0f} s)",
        flush=True,
    )
    return most <= target


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="kills with each lease (default 10)")
    parser.add_argument("--lanes", type=int, default=5, help="deployments at once (default 5)")
    chosen = parser.parse_args()
    lanes = max(1, min(chosen.lanes, chosen.kills))
    with private_server(durable=True) as postgres, tempfile.TemporaryDirectory() as folder:
        within = [measure(postgres, Path(folder), lease, chosen.kills, lanes) for lease in TARGETS]
    sys.exit(0 if all(within) else 1)


if __name__ == "__main__":
    main()
