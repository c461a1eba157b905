"""Drives PgQueuer in its own environment. See telling.py for how."""

import asyncio
import time
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries
from pgqueuer.sm import SchedulerManager
from telling import asked, drive, peak_mb, tell, when_told_to_stop

NOOP = "noop"
MAKE_DUE = """UPDATE pgqueuer_schedules SET next_run = now() - interval '1 second'
    WHERE id IN (SELECT id FROM pgqueuer_schedules ORDER BY id LIMIT $1)"""


async def connected(options):
    return Queries(AsyncpgDriver(await asyncpg.connect(options["url"])))


async def prepare(options):
    queries = await connected(options)
    await queries.install()
    await queries.optimize_autovacuum()
    tell(prepared=True)


async def enqueue(options):
    queries = await connected(options)
    jobs, batch = options["jobs"], options["batch"]
    started = time.perf_counter()
    for first in range(0, jobs, batch):
        numbers = range(first, min(first + batch, jobs))
        await queries.enqueue(
            [NOOP] * len(numbers), [str(n).encode() for n in numbers], [0] * len(numbers)
        )
    tell(seconds=time.perf_counter() - started, peak_mb=peak_mb())


async def work(options):
    if options["connections"] == 1:
        driver = AsyncpgDriver(await asyncpg.connect(options["url"]))
    else:
        size = options["connections"]
        driver = AsyncpgPoolDriver(
            await asyncpg.create_pool(options["url"], min_size=size, max_size=size)
        )
    worker = PgQueuer(driver)

    async def noop(job):
        pass

    async def noop_that_tells(job):
        tell(at=time.monotonic())

    worker.entrypoint(NOOP, accepts_context=False)(
        noop_that_tells if options.get("tell_starts") else noop
    )
    loop = asyncio.get_running_loop()
    when_told_to_stop(lambda: loop.call_soon_threadsafe(worker.shutdown.set))
    tell(started_at=time.time())
    await worker.run(
        batch_size=options["batch_size"],
        max_concurrent_tasks=options.get("limit"),
        dequeue_timeout=timedelta(seconds=30),
    )
    tell(peak_mb=peak_mb())


async def ask(options):
    queries = await connected(options)
    tell(ready=True)
    loop = asyncio.get_running_loop()
    lines = asked()
    while (line := await loop.run_in_executor(None, next, lines, None)) is not None:
        at = time.monotonic()
        await queries.enqueue(NOOP, line.encode(), 0)
        tell(at=at)
    tell(peak_mb=peak_mb())


async def register(options):
    """One statement for all schedules, and the same statement when they are there already."""
    queries = await connected(options)
    manager = scheduler(queries, options)
    started = time.perf_counter()
    await queries.insert_schedule({key: one.next_in() for key, one in manager.registry.items()})
    tell(seconds=time.perf_counter() - started, peak_mb=peak_mb())


async def tick(options):
    """At each line, what its scheduler does in one round, with so many due as the line says."""
    queries = await connected(options)
    manager = scheduler(queries, options)
    await queries.insert_schedule({key: one.next_in() for key, one in manager.registry.items()})
    tell(ready=True)
    loop = asyncio.get_running_loop()
    lines = asked()
    while (line := await loop.run_in_executor(None, next, lines, None)) is not None:
        await queries.driver.execute(MAKE_DUE, int(line))
        started = time.perf_counter()
        due = await queries.fetch_schedule(
            {key: one.next_in() for key, one in manager.registry.items()}
        )
        by_key = {(key.entrypoint, key.expression): one for key, one in manager.registry.items()}
        await asyncio.gather(
            *(manager.dispatch(by_key[one.entrypoint, one.expression], one) for one in due)
        )
        min(one.next_in() for one in manager.registry.values())
        tell(milliseconds=1000 * (time.perf_counter() - started))
    tell(peak_mb=peak_mb())


def scheduler(queries, options):
    manager = SchedulerManager(queries)

    async def noop(schedule):
        pass

    for number in range(options["schedules"]):
        manager.schedule(f"schedule-{number}", "0 * * * *", accepts_context=False)(noop)
    return manager


def on_uvloop(action):
    return lambda options: uvloop.run(action(options))


ACTIONS = (prepare, enqueue, work, ask, register, tick)

if __name__ == "__main__":
    drive({action.__name__: on_uvloop(action) for action in ACTIONS})
