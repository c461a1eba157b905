"""A deployment under steady load on a clock that a test moves: what an hour of it leaves behind.

The actors are the real ones, each made once, as in a process that runs for weeks; only the pauses
between their cycles are virtual.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import func, select, text

from benchmarks._flatness import of_this_process
from headway import Group, Headway, Run, every
from headway.applying import apply_declarations
from headway.definition.runtime import Runtime
from headway.dispatcher.cycle import JobDispatcher
from headway.domain.execution import Execution
from headway.domain.routing import Routing
from headway.domain.virtual_clock import VirtualClock
from headway.history import Retention
from headway.lease import LeaseKeeper, this_process
from headway.manager.cycle import ManifestManager
from headway.manager.sweep import Sweep
from headway.observe import Event
from headway.orphans import OrphanSweep
from headway.runner.job_runner import JobRunner
from headway.servers.local import LocalServer
from headway.store import executions
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import schema

LEASE = timedelta(seconds=50)  # renewed with every step
STEP = timedelta(seconds=10)
MINUTE = timedelta(minutes=1)
KEPT = timedelta(minutes=5)
TICKERS = 2
BUCKETS = 2
# Named once: what a sample holds must not look like a leak.
TABLES = {f"rows {name.removeprefix('headway_')}": table for name, table in schema.tables.items()}


def steady_load(url: str, **settings: Any) -> Headway:
    """Schedules of a few seconds, chains, activations, and failures of every kind."""
    wanted = {
        "retention_period": KEPT,
        "dead_letter_retention_period": KEPT,
        "default_retry_delay": timedelta(seconds=10),
        "server_lease": LEASE,
        "max_crashes": 10**6,  # whoever dies here is not the fault of its job
    }
    hw = Headway("soak", database_url=url, **wanted | settings)

    @hw.workflow
    def work(run: Run) -> None:
        run.progress(0.5, "half of it")

    @hw.workflow
    async def wait(run: Run) -> None:
        await asyncio.sleep(0)

    @hw.workflow(keep_output=True)
    def fail_now_and_then(run: Run) -> str:
        if run.attempt == 1:
            raise RuntimeError("not the first time")
        return "the second time"

    @hw.workflow
    def fail(run: Run) -> None:
        raise RuntimeError("never")

    @hw.workflow
    def activate(run: Run) -> None:
        run.activate_many((f"bucket-{number}", None) for number in range(BUCKETS))

    limited = Group("limited", max_active_jobs=2)
    for number in range(TICKERS):
        chain = hw.schedule(
            work, f"tick-{number}", None, every(seconds=10 * (number + 1)), group=limited
        )
        chain.then_include(wait, f"after-{number}", None)
    hw.schedule(fail_now_and_then, "flaky", None, every(seconds=30))
    hw.schedule(fail, "broken", None, every(seconds=30), max_retries=2)
    spread = hw.schedule(activate, "spread", None, every(minutes=1))
    for number in range(BUCKETS):
        spread.include(work, f"bucket-{number}", None, dormant=True)
    hw.schedule(work, "by-hand")
    return hw


class Soak:
    """The load on one database, sampled as virtual time goes by."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.store = Store(url, clock=self.clock, durable=False)
        migrate(self.store)
        self.app = steady_load(url, **settings)
        apply_declarations(self.app, self.store)
        self.samples: list[dict[str, float]] = []
        self.happened: Counter[str] = Counter()
        self.app.observer.subscribe(self._count)
        own, observer = self.app.settings, self.app.observer
        self._runtime = Runtime("soak", self.app.registry, self.store)
        self._keeper = self._new_server()
        self._manager = ManifestManager(self.store, own, observer)
        self._dispatcher = JobDispatcher(self.store, own, observer, LocalServer(lambda: None))
        self._runner = JobRunner(self.store, self.app.registry, observer, self._keeper.id, own)
        self._retention = Retention(self.store, own, observer)
        self._sweep = Sweep(self.store, own, observer)
        self._orphans = OrphanSweep(self.store, self._keeper, own.max_crashes, observer)
        self._keeper.register()

    def _count(self, event: Event) -> None:
        self.happened[event.name] += 1

    def _new_server(self) -> LeaseKeeper:
        def describe(own_id: str) -> Any:
            return this_process(own_id, ["worker"], self.app.registry.names(), 4, Routing())

        return LeaseKeeper(
            self.store, LEASE, self.app.observer, describe, list, lambda own_id: None
        )

    def last(self, minutes: int, *, clean_up: bool = True) -> None:
        """Let so many minutes pass, and take a sample every other one."""
        for number in range(minutes):
            for _ in range(MINUTE // STEP):
                self.clock.move_to(self.clock.now + STEP)
                self._keeper.beat()
                self._work_off()
            self._orphans.run_once()
            self._intervene(number)
            if clean_up:
                while self._retention.run_once().more:
                    pass
            self._sweep.run_once()
            if number % 2:
                self.samples.append(self._sample())

    def _work_off(self) -> None:
        """All that is due now: chains and activations come to their end."""
        self._manager.run_once()
        while self._dispatcher.run_once().dispatched:
            self._runner.run_once()
            self._manager.run_once()

    def _intervene(self, number: int) -> None:
        """What people and programs do every minute, and a worker that dies with a job."""
        letters = self._runtime.dead_letters
        if number % 2:
            letters.requeue_all("once more")
        else:
            letters.acknowledge_all("known")
        for name in ("work", "fail", "wait"):
            self._runtime.enqueue(name)
        self._runtime.trigger("by-hand", delay=timedelta(seconds=30))
        self._runtime.trigger("by-hand", delay=timedelta(hours=1))
        self._runtime.cancelling.cancel("by-hand", None, None, None, None)
        self._runtime.schedule("work", f"passing-{number}", None, every(hours=1))
        self._dispatcher.run_once()
        self._die_with(self._claim_as_another())
        self._work_off()
        self._runtime.unschedule(f"passing-{number}")

    def _claim_as_another(self) -> tuple[LeaseKeeper, list[Execution]]:
        victim = self._new_server()
        victim.register()
        with self.store.writing() as tx:
            taken = executions.claim_pending(tx, victim.id, 1, self.app.registry.names())
        return victim, taken

    def _die_with(self, victim: tuple[LeaseKeeper, list[Execution]]) -> None:
        """Without a word to anybody: its connection is closed, its row stays until it is buried."""
        server, taken = victim
        assert taken, "it dies with a job"
        server._store.close()

    def _sample(self) -> dict[str, float]:
        found = of_this_process()
        with self.store.reading() as tx:
            for name, table in TABLES.items():
                rows = tx.connection.execute(select(func.count()).select_from(table)).scalar_one()
                found[name] = rows
        return found | self._sizes()

    def _sizes(self) -> dict[str, float]:
        if self.store.on_postgresql:
            return self._sizes_on_postgresql()
        with self.store.reading() as tx:
            pages, each = (
                tx.connection.execute(text(f"PRAGMA {name}")).scalar_one()
                for name in ("page_count", "page_size")
            )
        log = Path(f"{self.store.url.database}-wal")
        return {"bytes of the database": pages * each, "bytes of its log": log.stat().st_size}

    def _sizes_on_postgresql(self) -> dict[str, float]:
        """After a vacuum: autovacuum comes every minute, but not of virtual time."""
        with self.store.notifying() as connection:
            for name in schema.tables:
                connection.execute(text(f"VACUUM {name}"))
            sizes = connection.execute(
                text(
                    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
                    " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
                )
            ).scalar_one()
            sessions = connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name = 'headway'"
                )
            ).scalar_one()
        return {"bytes of the database": float(sizes), "connections": sessions}

    def close(self) -> None:
        self._runner.close()
        self._keeper.stop()
        self.store.close()
