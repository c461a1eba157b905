"""Dormant dependents: the parent decides which of them run, and with what.

Run it: headway run dormant:hw
"""

from dataclasses import dataclass

from pydantic import BaseModel

from headway import Group, Headway, Item, Run, every

hw = Headway("dormant", database_url="sqlite:///dormant.db")

TABLES = ("customer", "invoice")
BATCHES = range(4)


class DeltaImport(BaseModel):
    table: str


class ExtractRequest(BaseModel):
    table: str
    batch: int
    ids: list[int] = []


@dataclass
class Changes:
    table: str
    buckets: dict[int, list[int]]


# Stands for the source system: what has changed there, by table and batch.
changed = {"customer": {0: [4, 8], 1: [], 2: [6]}, "invoice": {}}


def find_changes(job: DeltaImport) -> Changes:
    return Changes(job.table, changed.pop(job.table, {}))


def queue_delta_bronze_tasks(changes: Changes, run: Run) -> None:
    run.activate_many(
        (
            f"delta-bronze-{changes.table}-{batch}",
            ExtractRequest(table=changes.table, batch=batch, ids=ids),
        )
        for batch, ids in changes.buckets.items()
        if ids
    )


delta_import = hw.workflow("delta-import", steps=(find_changes, queue_delta_bronze_tasks))


@hw.workflow
def cache_bronze(job: ExtractRequest) -> None:
    print(f"caching {job.ids} of {job.table}, batch {job.batch}")


(
    hw.schedule_many(
        delta_import,
        "delta",
        [Item(table, DeltaImport(table=table)) for table in TABLES],
        every(seconds=10),
        group=Group(max_active_jobs=4),
    ).include_many(
        cache_bronze,
        "delta-bronze",
        [
            Item(
                f"{table}-{batch}",
                ExtractRequest(table=table, batch=batch),
                depends_on=f"delta-{table}",
            )
            for table in TABLES
            for batch in BATCHES
        ],
        dormant=True,
        group=Group(max_active_jobs=4),
    )
)
