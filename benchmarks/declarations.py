"""What declaring many manifests costs: made from a generator, applied, applied again unchanged.

    python -m benchmarks.declarations [--sizes N …] [--database NAME]

Each turn is a new process, as each start of a deployment is, so that its peak memory is its own.
Processor seconds are those of that process and of the whole PostgreSQL server: unlike wall time
they hold on a machine that others use as well.

Targets on two cores with PostgreSQL: 1,000,000 registered in under 100 s, applied again unchanged
in under 60 s, peak memory of the process below 500 MB.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel

from benchmarks._processor import Processor, postmaster_of
from headway import Headway, Item, every
from headway.applying import apply_declarations
from headway.store.migrate import migrate
from tests.postgres_server import private_server

ROOT = Path(__file__).parents[1]
SIZES = (1_000, 10_000, 100_000, 1_000_000)
LARGEST_ON_SQLITE = 100_000
TURNS = ("register", "re-apply")


class Table(BaseModel):
    """The input of each manifest."""

    name: str
    partition: int = 0


def extract(table: Table) -> None:
    """Never run here."""


@dataclass(frozen=True)
class Turn:
    """What one process took to declare and apply *manifests*, *created* of which were new."""

    manifests: int
    created: int
    declaring: float
    applying: float
    peak_mb: float
    processor_here: float
    processor_server: float

    @property
    def seconds(self) -> float:
        return self.declaring + self.applying


def measure(url: str, count: int, postmaster: int = 0) -> dict[str, Turn]:
    """Register *count* manifests in an empty database, then apply them again: each in a process."""
    turns = {}
    for name in TURNS:
        command = [sys.executable, "-m", "benchmarks.declarations", "--one-turn", url]
        answer = subprocess.run(
            [*command, "--sizes", str(count), "--postmaster", str(postmaster)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
        turns[name] = Turn(**json.loads(answer.stdout))
    assert [one.created for one in turns.values()] == [count, 0], turns
    return turns


def one_turn(url: str, count: int, postmaster: int) -> Turn:
    """A new process's start: declare everything, then apply it."""
    used = Processor(postmaster or None)
    started = time.perf_counter()
    hw = Headway("benchmark", database_url=url)
    hw.workflow(extract)
    hw.schedule_many(extract, "extract", items(count), every(hours=1))
    declared = time.perf_counter()
    store = hw.open_store()
    migrate(store)
    applied = apply_declarations(hw, store)
    store.close()
    ended = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall = declared - started, ended - declared
    return Turn(count, applied.created, *wall, peak, used.here(), used.server())


def items(count: int) -> Iterator[Item]:
    return (
        Item(number, Table(name=f"table-{number}", partition=number)) for number in range(count)
    )


def report(kind: str, turns: dict[str, Turn]) -> None:
    for name, one in turns.items():
        say(
            f"{kind:11} {one.manifests:>9,} {name:9} {one.declaring:9.2f} {one.applying:8.2f}"
            f" {one.seconds:8.2f} {one.manifests / one.seconds:10,.0f} {one.peak_mb:8.0f}"
            f" {one.processor_here:9.2f} {one.processor_server:9.2f}"
        )


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES[:-1], help="how many")
    parser.add_argument("--database", choices=("postgresql", "sqlite", "both"), default="both")
    parser.add_argument("--one-turn", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--postmaster", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one_turn:
        turn = one_turn(options.one_turn, options.sizes[0], options.postmaster)
        say(json.dumps(asdict(turn)))
        return
    load = os.getloadavg()[0]
    say(f"load of the machine before: {load:.1f} on {os.cpu_count()} cores")
    say(
        "database    manifests turn      declare s  apply s  total s     rows/s  peak MB"
        " cpu own s  server s"
    )
    for size in options.sizes:
        if options.database != "sqlite":
            with private_server(durable=True) as server:
                report("postgresql", measure(server.url(), size, postmaster_of(server)))
        if options.database != "postgresql" and size <= LARGEST_ON_SQLITE:
            with tempfile.TemporaryDirectory() as directory:
                url = f"sqlite:///{Path(directory, 'headway.db')}"
                report("sqlite", measure(url, size))


if __name__ == "__main__":
    main()
