"""Drives Procrastinate in its own environment. See telling.py for how."""

import asyncio
import contextlib
import time

import procrastinate
import uvloop
from procrastinate.periodic import PeriodicDeferrer, PeriodicRegistry
from telling import asked, drive, peak_mb, tell, when_told_to_stop


def application(options):
    size = options.get("connections", 1)
    connector = procrastinate.PsycopgConnector(
        conninfo=options["url"], min_size=size, max_size=size
    )
    app = procrastinate.App(connector=connector)

    @app.task(name="noop")
    async def noop(number, timestamp=0):
        if options.get("tell_starts"):
            tell(at=time.monotonic())

    return app, noop


async def prepare(options):
    app, _ = application(options)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
    tell(prepared=True)


async def enqueue(options):
    app, noop = application(options)
    jobs, batch = options["jobs"], options["batch"]
    async with app.open_async():
        started = time.perf_counter()
        for first in range(0, jobs, batch):
            numbers = range(first, min(first + batch, jobs))
            await noop.batch_defer_async(*({"number": number} for number in numbers))
        tell(seconds=time.perf_counter() - started, peak_mb=peak_mb())


async def work(options):
    app, _ = application(options)
    async with app.open_async():
        loop = asyncio.get_running_loop()
        worker = asyncio.ensure_future(app.run_worker_async(concurrency=options["concurrency"]))
        when_told_to_stop(lambda: loop.call_soon_threadsafe(worker.cancel))
        tell(started_at=time.time())
        with contextlib.suppress(asyncio.CancelledError):
            await worker
    tell(peak_mb=peak_mb())


async def ask(options):
    app, noop = application(options)
    async with app.open_async():
        tell(ready=True)
        loop = asyncio.get_running_loop()
        lines = asked()
        while (line := await loop.run_in_executor(None, next, lines, None)) is not None:
            at = time.monotonic()
            await noop.defer_async(number=int(line))
            tell(at=at)
    tell(peak_mb=peak_mb())


async def tick(options):
    """At each line, one round of its deferrer, with so many due as the line says."""
    app, noop = application(options)
    registry = PeriodicRegistry()
    for number in range(options["schedules"]):
        registry.register_task(
            task=noop,
            cron="0 * * * *",
            periodic_id=str(number),
            configure_kwargs={"task_kwargs": {"number": number}},
        )
    deferrer = PeriodicDeferrer(registry)
    hour = int(time.time()) // 3600 * 3600
    async with app.open_async():
        tell(ready=True)
        loop = asyncio.get_running_loop()
        lines = asked()
        while (line := await loop.run_in_executor(None, next, lines, None)) is not None:
            hour += 3600
            keys = list(registry.periodic_tasks)
            deferrer.last_defers = dict.fromkeys(keys, hour)
            deferrer.last_defers |= dict.fromkeys(keys[: int(line)], hour - 3600)
            started = time.perf_counter()
            await deferrer.defer_jobs(deferrer.get_previous_tasks(at=hour + 1))
            deferrer.get_next_tick(at=hour + 1)
            tell(milliseconds=1000 * (time.perf_counter() - started))
    tell(peak_mb=peak_mb())


def on_uvloop(action):
    return lambda options: uvloop.run(action(options))


ACTIONS = (prepare, enqueue, work, ask, tick)

if __name__ == "__main__":
    drive({action.__name__: on_uvloop(action) for action in ACTIONS})
