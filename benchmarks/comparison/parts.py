"""The parts of the comparison, in the order of the table."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.comparison.ageing import measure_ageing
from benchmarks.comparison.bench import Bench
from benchmarks.comparison.dependents import measure_dependents
from benchmarks.comparison.draining import (
    measure_drain,
    measure_enqueue,
    measure_processes,
    measure_sync,
)
from benchmarks.comparison.floor import measure_floor
from benchmarks.comparison.idling import measure_idling
from benchmarks.comparison.latency import measure_latency
from benchmarks.comparison.observed import measure_observed
from benchmarks.comparison.on_celery import measure_celery
from benchmarks.comparison.schedules import measure_registering, measure_ticks


@dataclass(frozen=True)
class Part:
    """One part: its name on the command line, what it measures, and what differs."""

    name: str
    about: str
    measure: Callable[[Bench], None]


PARTS = (
    Part(
        "floor",
        "What PostgreSQL does on this machine for one psycopg connection, with tables of few "
        "columns and one index each.",
        measure_floor,
    ),
    Part(
        "enqueue",
        "One client queues 20,000 jobs in as few calls as its interface has for that: headway "
        "one list, or ten groups of 2,000 manifests, PgQueuer one list, Procrastinate batches of "
        "1,000; APScheduler 3 adds 2,000 (all of them in a full run) one by one, for it has no "
        "other call.",
        measure_enqueue,
    ),
    Part(
        "drain",
        "One worker process empties a queue of no-op async jobs, from its start to the last "
        "finish: 20,000, but 2,000 for Procrastinate and APScheduler 3 unless the run is a full "
        "one. headway keeps an exact limit for all, for manifests also one for each of ten groups, "
        "and a record of each execution with input, times and outcome; PgQueuer keeps a line when "
        "a job is queued and one when it ends, and its limit is of one process; Procrastinate "
        "keeps the job and an event for each change; APScheduler 3 keeps nothing, and its no-op is "
        "a plain function in a pool of 20 threads.",
        measure_drain,
    ),
    Part(
        "sync",
        "The drain of 2,000 sync functions (20,000 in a full run) by headway alone: with 100 "
        "threads and a limit of 100, and with default settings, which give a process as many "
        "slots as it has processors.",
        measure_sync,
    ),
    Part(
        "latency",
        "From before the call that queues one job to the first line of its function, with nothing "
        "else to do. Client and worker are two processes; with APScheduler 3 they are one, for "
        "only that one hears of a new job at once.",
        measure_latency,
    ),
    Part(
        "observed",
        "The latency of headway alone: as it is, with a worker that exports a span of each run by "
        "OpenTelemetry, and through PgBouncer in transaction mode (Debian's package; left out "
        "where it is missing).",
        measure_observed,
    ),
    Part(
        "ticks",
        "One look at what is due, and its queueing: a cycle of headway's manager, a tick of "
        "APScheduler 3, one round of PgQueuer's scheduler and of Procrastinate's deferrer. "
        "PgQueuer runs what is due right there, Procrastinate keeps its schedules in memory.",
        measure_ticks,
    ),
    Part(
        "registering",
        "A process declares its schedules and writes them: into an empty database, and again "
        "unchanged. Procrastinate stores none.",
        measure_registering,
    ),
    Part(
        "dependents",
        "One manifest succeeds and 10,000 others run after it. None of the peers has dependents.",
        measure_dependents,
    ),
    Part(
        "processes",
        "The drain by one, two and four worker processes on the same two cores as PostgreSQL.",
        measure_processes,
    ),
    Part(
        "ageing",
        "headway's drain with a long history, and while a snapshot that is a minute old stays "
        "open, against new databases in the same run.",
        measure_ageing,
    ),
    Part(
        "idle",
        "Statements per second that a process with every role sends while there is nothing to do; "
        "BEGIN and COMMIT are not counted.",
        measure_idling,
    ),
    Part(
        "celery",
        "1,000 jobs that count in a file, on one Celery worker with two processes and one Redis "
        "broker (Debian's package; left out where it is missing): tasks of plain Celery, and "
        "headway's executions with their record and limits.",
        measure_celery,
    ),
)
