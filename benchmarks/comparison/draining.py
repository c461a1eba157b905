"""Bulk enqueue, and the drain of what was enqueued: jobs that do nothing, through the whole way."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.databases import end_of, last_id, settle
from benchmarks.comparison.measurements import Row
from benchmarks.comparison.subjects import (
    AT_ONCE,
    FEW,
    Subject,
    apscheduler,
    headway,
    pgqueuer,
    plain_headway,
    procrastinate,
    threaded_headway,
)

ENQUEUE = Row("enqueue", "bulk enqueue", "jobs/s")
CLIENT_MEMORY = Row("enqueue", "peak memory of the client", "MB")
DRAIN = Row("drain", "drain", "jobs/s")
SYNC = Row("sync", "drain of sync functions", "jobs/s")
LIMITED = Row("drain", f"drain, {FEW} at once", "jobs/s")
WORKER_MEMORY = Row("drain", "peak memory of the worker", "MB")
PROCESSES = (1, 2, 4)


@dataclass(frozen=True)
class Drained:
    """How fast it went, and the most memory one of the workers had."""

    rate: float
    peak_mb: float


def measure_enqueue(bench: Bench) -> None:
    """So many jobs in as few calls as each has for that."""
    for subject in bench.in_turn("bulk enqueue", everybody()):
        jobs = bench.sizes.slow_jobs if subject.enqueues_slowly else bench.sizes.jobs
        with prepared(bench, subject, jobs) as url:
            said = bench.told(subject, "enqueue", url=url, jobs=jobs, **subject.enqueuing)
        bench.note(ENQUEUE, subject, jobs / said["seconds"])
        bench.note(CLIENT_MEMORY, subject, said["peak_mb"])


def measure_drain(bench: Bench) -> None:
    """One worker process and a queue full of jobs."""
    for subject in bench.in_turn("drain", everybody()):
        drained = fill_and_drain(bench, subject)
        bench.note(DRAIN, subject, drained.rate)
        bench.note(WORKER_MEMORY, subject, drained.peak_mb)
    limited = [headway(FEW), pgqueuer(FEW), headway(FEW, of_manifests=True)]
    for subject in bench.in_turn(LIMITED.title, limited):
        bench.note(LIMITED, subject, fill_and_drain(bench, subject).rate)


def measure_sync(bench: Bench) -> None:
    """headway alone: sync functions in threads, with FEW of them and with default settings."""
    for subject in bench.in_turn("sync functions", [threaded_headway(), plain_headway()]):
        bench.note(SYNC, subject, fill_and_drain(bench, subject).rate)


def measure_processes(bench: Bench) -> None:
    """The same queue for more and more worker processes; limits grow with them."""
    for processes in PROCESSES:
        named = "1 process" if processes == 1 else f"{processes} processes"
        row = Row("processes", f"drain by {named}", "jobs/s")
        for subject in bench.in_turn(row.title, [headway(AT_ONCE * processes), pgqueuer()]):
            bench.note(row, subject, fill_and_drain(bench, subject, processes).rate)


def everybody() -> Sequence[Subject]:
    """Each with the settings it is fastest with."""
    return [
        headway(),
        pgqueuer(),
        procrastinate(),
        apscheduler(),
        headway(of_manifests=True),
        headway(on_sqlite=True),
    ]


def fill_and_drain(bench: Bench, subject: Subject, processes: int = 1) -> Drained:
    """The drain of a new database; the slow get a shorter queue, which is no harm to them."""
    jobs = bench.sizes.slow_jobs if subject.drains_slowly else bench.sizes.jobs
    with prepared(bench, subject, jobs) as url:
        fill(bench, subject, url, jobs)
        return drain(bench, subject, url, jobs, processes)


@contextmanager
def prepared(bench: Bench, subject: Subject, jobs: int) -> Iterator[str]:
    """A database with everything *subject* needs before so many jobs can be queued."""
    with bench.database(subject) as url:
        manifests = jobs if subject.of_manifests else 0
        bench.told(subject, "prepare", url=url, manifests=manifests, **subject.preparing)
        settle(url)
        yield url


def fill(bench: Bench, subject: Subject, url: str, jobs: int) -> None:
    """Queue so many jobs, unmeasured."""
    bench.told(subject, "enqueue", url=url, jobs=jobs, **subject.enqueuing)
    settle(url)


def drain(bench: Bench, subject: Subject, url: str, jobs: int, processes: int = 1) -> Drained:
    """Start workers and let them do all jobs: from the first one's start to the last finish."""
    record = subject.record
    since = last_id(url, record) if record else 0
    with ExitStack() as running:
        workers = [
            running.enter_context(
                bench.driver(subject, "work", url=url, jobs=jobs, **subject.worker)
            )
            for _ in range(processes)
        ]
        began = min(worker.hear()["started_at"] for worker in workers)
        ended = end_of(url, record, since, jobs) if record else workers[0].hear()["finished_at"]
        peak = max(worker.stop()["peak_mb"] for worker in workers)
    return Drained(jobs / (ended - began), peak)
