"""Groups with caps, many jobs in them, the processes that dispatch and run these, and a watch."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

from sqlalchemy import ColumnElement, Table, func, select

from headway import Group, Headway, Item, Run, every
from headway.applying import apply_declarations
from headway.domain.work_queue import NewEntry, Source
from headway.store import engine, work_queue
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.tables import execution, manifest, manifest_group
from headway.store.tables import work_queue as queue
from headway.store.transaction import Transaction
from headway.wakeups import Role
from tests.scenarios.bodies import Diary
from tests.scenarios.fleet import serve

CAPS = (1, 2, 5, 8, 13)
GLOBAL_CAP = 24
SLOTS = 4
SHORT, LONG = 0.05, 1.0
MANIFESTS = 40
PRIORITIES = 32
QUEUED = 60
LOOK_PAUSE = 0.02
HESITATION = 0.25
SETTINGS: dict[str, Any] = {
    "max_active_jobs": GLOBAL_CAP,
    "worker_count": SLOTS,
    "server_lease": 6,
    "max_crashes": 1000,  # whoever is killed here has done nothing wrong
}


def dispatch(url: str, log: Path) -> None:
    """A process with the dispatcher's role."""
    serve(Headway("limited", database_url=url, **SETTINGS), Role.DISPATCHER, log=log)


def dispatch_without_lock(url: str, log: Path) -> None:
    """The same, but it dispatches whoever else does, and hesitates to write what it decided."""
    ask, dispatch_each = engine._try_lock, work_queue.dispatch_each

    def hesitate(*arguments: Any, **named: Any) -> Any:
        time.sleep(HESITATION)
        return dispatch_each(*arguments, **named)

    work_queue.dispatch_each = hesitate
    engine._try_lock = lambda connection, lock, *more: (
        ask(connection, lock, *more) or (datetime.now(UTC) if lock is Lock.DISPATCH else None)
    )
    dispatch(url, log)


def run_short_jobs(url: str, log: Path) -> None:
    """A process of several workers, who write down when each body starts and ends."""
    _run_jobs(url, log, SHORT)


def run_long_jobs(url: str, log: Path) -> None:
    """The same, where bodies take most of the time that their executions are live."""
    _run_jobs(url, log, LONG)


def _run_jobs(url: str, log: Path, seconds: float) -> None:
    app, diary = Headway("limited", database_url=url, **SETTINGS), Diary(log.parent)

    @app.workflow
    async def job(number: int, run: Run) -> None:
        diary.note("start", number, run.execution_id)
        await asyncio.sleep(seconds)
        diary.note("end", number, run.execution_id)

    serve(app, Role.WORKER, log=log)


# In one statement, or what goes back from one table to the other might be seen in neither.
UNENDED = select(
    select(func.count()).select_from(queue).scalar_subquery()
    + select(func.count()).select_from(execution).scalar_subquery()
)


class Workload:
    """So many jobs for the group of each cap, queued while the others run.

    Each has a priority of its own, so that what comes later is often better than what waits: two
    dispatchers who look one after the other choose different ones.
    """

    def __init__(self, store: Store, jobs: Mapping[int, int], chance: Random) -> None:
        self._store = store
        self._declare()
        self.cap_of = dict(enumerate(cap for cap in CAPS for _ in range(jobs[cap])))
        self._waiting = self._entries(chance)

    def _declare(self) -> None:
        app = Headway("limited")

        @app.workflow
        def job(number: int) -> None: ...

        for cap in CAPS:
            items = [Item(number, number) for number in range(MANIFESTS)]
            group = Group(f"at-most-{cap}", max_active_jobs=cap)
            app.schedule_many(job, f"job-{cap}", items, every(days=365), group=group)
        apply_declarations(app, self._store)

    def _entries(self, chance: Random) -> dict[int, list[NewEntry]]:
        manifests = self._manifests()
        waiting: dict[int, list[NewEntry]] = {cap: [] for cap in CAPS}
        for number, cap in self.cap_of.items():
            manifest_id, group_id = chance.choice(manifests[cap])
            entry = NewEntry(
                workflow="job",
                source=Source.TRIGGER,
                input=str(number),
                input_type="int",
                priority=chance.randrange(PRIORITIES),
                manifest_id=manifest_id,
                group_id=group_id,
            )
            waiting[cap].append(entry)
        return waiting

    def _manifests(self) -> dict[int, list[tuple[int, int]]]:
        """The manifests in the group of each cap, each with its group."""
        columns = select(manifest_group.c.max_active_jobs, manifest.c.id, manifest.c.group_id)
        statement = columns.join_from(manifest, manifest_group).order_by(manifest.c.id)
        found: dict[int, list[tuple[int, int]]] = {cap: [] for cap in CAPS}
        with self._store.reading() as tx:
            for cap, manifest_id, group_id in tx.connection.execute(statement):
                found[cap].append((manifest_id, group_id))
        return found

    def feed(self) -> int:
        """Queue what each group is short of; returns how many jobs have not ended yet."""
        with self._store.writing() as tx:
            queued = by_cap(tx, queue)
            entries: list[NewEntry] = []
            for cap, waiting in self._waiting.items():
                short = max(0, QUEUED - queued[cap])
                entries += waiting[:short]
                del waiting[:short]
            work_queue.enqueue(tx, entries)
            unended: int = tx.connection.execute(UNENDED).scalar_one()
        return unended + sum(len(waiting) for waiting in self._waiting.values())


def by_cap(tx: Transaction, table: Table) -> Counter[int]:
    """How many rows of *table* the group of each cap has, all at one moment."""
    cap: ColumnElement[int] = manifest_group.c.max_active_jobs
    of_group = table.c.group_id == manifest_group.c.id
    counted = select(cap, func.count()).select_from(table.join(manifest_group, of_group))
    return Counter({row[0]: row[1] for row in tx.connection.execute(counted.group_by(cap))})


class Watch:
    """Looks again and again, on a connection of its own, at how many executions are live."""

    def __init__(self, store: Store) -> None:
        self.looks = 0
        self.most: Counter[int] = Counter()
        self.most_in_all = 0
        self._store = store.apart()
        self._over = Event()
        self._thread = Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._store.close()

    def _look_on(self) -> None:
        while not self._over.wait(LOOK_PAUSE):
            with self._store.reading() as tx:
                live = by_cap(tx, execution)
            self.looks += 1
            self.most |= live
            self.most_in_all = max(self.most_in_all, live.total())
