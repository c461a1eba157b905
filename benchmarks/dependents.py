"""What one success costs that 10,000 others wait for: until the last of them is queued.

    python -m benchmarks.dependents [--children N] [--rounds N] [--database NAME]

A parent ends; the manager's cycles then wake its children and queue them, a thousand at a time.
Wall time, and processor time of this process and of the PostgreSQL server.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, update

from benchmarks._processor import Processor, postmaster_of
from headway import Headway, Item, every
from headway.applying import apply_declarations
from headway.config import Settings
from headway.manager.cycle import ManifestManager
from headway.observe import Observer
from headway.store import manifests, wakes
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import dependency, manifest_state, work_queue
from headway.store.wakes import Scope
from tests.postgres_server import private_server

CHILDREN = 10_000
SETTINGS = Settings(max_work_queue_entries_per_cycle=None)


@dataclass(frozen=True)
class Woken:
    """How long it took from the parent's success until all children were queued."""

    seconds: float
    cycles: int
    processor_here: float
    processor_server: float


def work(number: int) -> None:
    """Never run here."""


def declare(url: str, children: int) -> Store:
    """A parent that is not due, and its children."""
    hw = Headway("benchmark", database_url=url)
    hw.workflow(work)
    hw.schedule(work, "parent", 0, every(days=3000), first_run="at_first_occurrence").include_many(
        work, "child", (Item(number, number) for number in range(children))
    )
    store = hw.open_store()
    migrate(store)
    apply_declarations(hw, store)
    manager = ManifestManager(store, SETTINGS, Observer())
    while manager.run_once().candidates:
        pass
    return store


def measure(store: Store, children: int, rounds: int, postmaster: int = 0) -> list[Woken]:
    """Let the parent succeed so many times; its children are forgotten between two successes."""
    with store.reading() as tx:
        [parent] = [one for one in manifests.load_next(tx, 0, 1) if one.external_id == "parent"]
    return [one_success(store, parent.manifest_id, children, postmaster) for _ in range(rounds)]


def one_success(store: Store, parent_id: int, children: int, postmaster: int) -> Woken:
    with store.writing() as tx:
        tx.connection.execute(delete(work_queue))
        seq = manifest_state.c.success_seq
        this = manifest_state.c.manifest_id == parent_id
        tx.connection.execute(update(manifest_state).where(this).values(success_seq=seq + 1))
        tx.connection.execute(update(dependency).values(consumed_seq=0))
        wakes.leave_wakes(tx, [(parent_id, Scope.CHILDREN)])
    manager = ManifestManager(store, SETTINGS, Observer())
    used, began, queued, cycles = Processor(postmaster or None), time.perf_counter(), 0, 0
    while queued < children:
        queued += manager.run_once().queued
        cycles += 1
    return Woken(time.perf_counter() - began, cycles, used.here(), used.server())


def report(kind: str, rounds: Sequence[Woken]) -> None:
    seconds, here, server = (
        statistics.median(values)
        for values in zip(
            *((one.seconds, one.processor_here, one.processor_server) for one in rounds),
            strict=True,
        )
    )
    sys.stdout.write(
        f"{kind:11} {seconds:6.2f} s ({min(one.seconds for one in rounds):.2f} to"
        f" {max(one.seconds for one in rounds):.2f}) in {rounds[0].cycles} cycles,"
        f" processor {here:.2f} s here, {server:.2f} s of the server\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--children", type=int, default=CHILDREN)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", choices=("postgresql", "sqlite", "both"), default="both")
    options = parser.parse_args()
    if options.database != "sqlite":
        with private_server(durable=True) as server:
            store = declare(server.url(), options.children)
            own = postmaster_of(server)
            report("postgresql", measure(store, options.children, options.rounds, own))
            store.close()
    if options.database != "postgresql":
        with tempfile.TemporaryDirectory() as directory:
            store = declare(f"sqlite:///{Path(directory, 'headway.db')}", options.children)
            report("sqlite", measure(store, options.children, options.rounds))
            store.close()


if __name__ == "__main__":
    main()
