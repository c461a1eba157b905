"""Drives APScheduler 3 in its own environment. See telling.py for how."""

import pickle
import threading
import time
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import BaseScheduler
from telling import asked, drive, peak_mb, tell, when_told_to_stop

SECOND = timedelta(seconds=1)
AT_ONCE = 10_000  # rows in one statement when a benchmark fills the table


class Still(BaseScheduler):
    """Ticks when it is told to, and not by itself."""

    def wakeup(self):
        pass

    def shutdown(self, wait=True):
        super().shutdown(wait)


def noop(number=0):
    pass


def noop_that_tells(number=0):
    tell(at=time.monotonic())


def scheduler(kind, options):
    url = options["url"].replace("postgresql:", "postgresql+psycopg:", 1)
    return kind(
        jobstores={"default": SQLAlchemyJobStore(url)},
        executors={"default": ThreadPoolExecutor(options.get("threads", 20))},
        job_defaults={"misfire_grace_time": None, "coalesce": True},
        timezone=UTC,
    )


def prepare(options):
    made = scheduler(Still, options)
    made.start()
    tell(prepared=True)


def enqueue(options):
    made = scheduler(Still, options)
    made.start(paused=True)
    started = time.perf_counter()
    for number in range(options["jobs"]):
        made.add_job(noop, args=[number])
    tell(seconds=time.perf_counter() - started, peak_mb=peak_mb())


def work(options):
    """The store keeps no record of what was done: this process counts."""
    made = scheduler(BackgroundScheduler, options)
    left, stop = options.get("jobs", 0), threading.Event()
    counting = threading.Lock()

    def count(event):
        nonlocal left
        with counting:
            left -= 1
            if left == 0:
                tell(finished_at=time.time())

    made.add_listener(count, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
    when_told_to_stop(stop.set)
    tell(started_at=time.time())
    made.start()
    stop.wait()
    made.shutdown()
    tell(peak_mb=peak_mb())


def alone(options):
    """Latency: only the process that runs a scheduler hears at once of a job that is added."""
    made = scheduler(BackgroundScheduler, options)
    made.start()
    tell(ready=True)
    for line in asked():
        at = time.monotonic()
        made.add_job(noop_that_tells, args=[int(line)])
        tell(asked_at=at)
    made.shutdown()
    tell(peak_mb=peak_mb())


def register(options):
    """Each job is one INSERT; again, each is one UPDATE."""
    made = scheduler(Still, options)
    made.start(paused=True)
    started = time.perf_counter()
    for number in range(options["schedules"]):
        made.add_job(
            noop, "interval", hours=1, args=[number], id=str(number), replace_existing=True
        )
    tell(seconds=time.perf_counter() - started, peak_mb=peak_mb())


def tick(options):
    """At each line, one pass over what is due, with so many jobs due as the line says."""
    made = scheduler(Still, options)
    made.start()
    store = made._jobstores["default"]
    state = made.add_job(noop, "interval", hours=1, args=[0], id="first").__getstate__()
    later = datetime.now(UTC) + timedelta(hours=1)
    fill(store, state, later, options["schedules"])
    tell(ready=True)
    for line in asked():
        now = datetime.now(UTC)
        with store.engine.begin() as connection:
            for number in range(int(line)):
                values = row(state, number, now - SECOND)
                rows = store.jobs_t.c
                connection.execute(
                    store.jobs_t.update().where(rows.id == values["id"]).values(**values)
                )
        started = time.perf_counter()
        made._process_jobs()
        tell(milliseconds=1000 * (time.perf_counter() - started))
    tell(peak_mb=peak_mb())


def fill(store, state, later, count):
    with store.engine.begin() as connection:
        for first in range(0, count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, count))
            connection.execute(
                store.jobs_t.insert(), [row(state, number, later) for number in numbers]
            )


def row(state, number, when):
    changed = {**state, "id": f"job-{number}", "next_run_time": when}
    return {
        "id": changed["id"],
        "next_run_time": when.timestamp(),
        "job_state": pickle.dumps(changed, pickle.HIGHEST_PROTOCOL),
    }


if __name__ == "__main__":
    actions = (prepare, enqueue, work, alone, register, tick)
    drive({action.__name__: action for action in actions})
