"""Who is measured, and with which settings: those its own documentation calls fast."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

HEADWAY = "headway"
SOFTWARE = (HEADWAY, "pgqueuer", "procrastinate", "apscheduler")
GROUPS = 10
MANY, FEW = 500, 100
# headway's workers: a batch is dispatched while the one before it is recorded.
AT_ONCE = 4000


@dataclass(frozen=True)
class Record:
    """Where a subject notes that a job is done."""

    table: str
    is_finished: str
    finished_at: str


@dataclass(frozen=True)
class Subject:
    """One piece of software with its settings; without a record, its worker counts what is done."""

    name: str
    software: str
    worker: Mapping[str, Any] = field(default_factory=dict)
    record: Record | None = None
    preparing: Mapping[str, Any] = field(default_factory=dict)
    enqueuing: Mapping[str, Any] = field(default_factory=dict)
    enqueues_slowly: bool = False
    drains_slowly: bool = False
    on_sqlite: bool = False
    of_manifests: bool = False


def headway(
    limit: int = AT_ONCE, *, on_sqlite: bool = False, of_manifests: bool = False
) -> Subject:
    """headway with *limit* jobs at once: of a workflow, or *of_manifests* in groups.

    Those may have a fifth of the limit each, and every run of them is counted and settled.
    """
    settings = {
        "max_active_jobs": limit,
        "worker_count": min(limit, AT_ONCE),
        "max_queued_jobs_per_cycle": limit,
    }
    name = "headway on SQLite" if on_sqlite else HEADWAY
    return Subject(
        name=f"{name}, manifests" if of_manifests else name,
        software=HEADWAY,
        worker={"settings": settings},
        record=Record("headway_execution_history", "state = 'completed'", "finished_at"),
        preparing={"groups": GROUPS, "cap": limit // 5},
        enqueuing={"groups": GROUPS if of_manifests else 0},
        on_sqlite=on_sqlite,
        of_manifests=of_manifests,
    )


def plain_headway() -> Subject:
    """headway with default settings and a sync function: what a first program looks like."""
    return replace(
        headway(), name="headway, default settings", worker={"sync": True}, drains_slowly=True
    )


def threaded_headway() -> Subject:
    """headway with a sync function and FEW threads."""
    limited = headway(FEW)
    worker = {**limited.worker, "sync": True}
    return replace(limited, name=f"headway, {FEW} threads", worker=worker, drains_slowly=True)


def traced_headway() -> Subject:
    """headway whose worker makes a span of each execution with OpenTelemetry."""
    traced = headway()
    return replace(traced, name="headway, traced", worker={**traced.worker, "traced": True})


def pooled_headway() -> Subject:
    """headway that reaches the server through PgBouncer."""
    return replace(headway(), name="headway, PgBouncer")


def pgqueuer(limit: int | None = None) -> Subject:
    """PgQueuer, whose batches may be half of its limit at most."""
    return Subject(
        name="PgQueuer",
        software="pgqueuer",
        worker={"batch_size": limit // 2 if limit else MANY, "limit": limit, "connections": 1},
        record=Record("pgqueuer_log", "status = 'successful'", "created"),
        enqueuing={"batch": 20_000},
    )


def procrastinate() -> Subject:
    """Procrastinate, with as many jobs at once as it gains from."""
    return Subject(
        name="Procrastinate",
        software="procrastinate",
        worker={"concurrency": FEW, "connections": 10},
        record=Record("procrastinate_events", "type = 'succeeded'", "at"),
        enqueuing={"batch": 1000},
        drains_slowly=True,
    )


def apscheduler() -> Subject:
    """APScheduler 3 with its store in PostgreSQL and a pool of threads."""
    return Subject(
        name="APScheduler 3",
        software="apscheduler",
        worker={"threads": 20},
        enqueues_slowly=True,
        drains_slowly=True,
    )
