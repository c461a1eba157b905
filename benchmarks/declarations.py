"""What declaring many manifests costs: made from a generator, applied, applied again unchanged.

    python -m benchmarks.declarations

Target: 100,000 in under 10 s on two cores with PostgreSQL, re-applied in under 6 s, peak below
300 MB. Measured on two idle cores: 5.6 s (2.1 declaring, 3.5 applying) and 2.5 s on PostgreSQL,
6.4 s and 2.4 s on SQLite, peak 162 MB.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from headway import Headway, Item, every
from headway.applying import apply_declarations
from headway.store.declarations import Applied
from headway.store.migrate import migrate
from tests.postgres_server import private_server


class Table(BaseModel):
    """The input of each manifest."""

    name: str
    partition: int = 0


def extract(table: Table) -> None:
    """Never run here."""


def items(count: int) -> Iterator[Item]:
    return (
        Item(number, Table(name=f"table-{number}", partition=number)) for number in range(count)
    )


def declared_and_applied(url: str, count: int) -> tuple[float, float, Applied]:
    """A new process's start: declare everything, then apply it; seconds for each."""
    started = time.perf_counter()
    hw = Headway("benchmark", database_url=url)
    hw.workflow(extract)
    hw.schedule_many(extract, "extract", items(count), every(hours=1))
    declared = time.perf_counter()
    store = hw.open_store()
    migrate(store)
    applied = apply_declarations(hw, store)
    store.close()
    return declared - started, time.perf_counter() - declared, applied


def measure(kind: str, url: str, count: int) -> None:
    for turn in ("first", "again"):
        declaring, applying, applied = declared_and_applied(url, count)
        expected = count if turn == "first" else 0
        assert applied.created == expected, applied
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        total = declaring + applying
        sys.stdout.write(
            f"{kind:11} {turn:6} {declaring:8.2f} {applying:8.2f} {total:8.2f}"
            f" {count / total:10,.0f} {peak:8.0f}\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--manifests", type=int, default=100_000)
    options = parser.parse_args()
    sys.stdout.write("database    turn   declare s  apply s  total s   rows/s     peak MB\n")
    with private_server(durable=True) as server:
        measure("postgresql", server.url(), options.manifests)
    with tempfile.TemporaryDirectory() as directory:
        measure("sqlite", f"sqlite:///{Path(directory, 'headway.db')}", options.manifests)


if __name__ == "__main__":
    main()
