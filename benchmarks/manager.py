"""What a cycle of the ManifestManager costs: by what is due, not by how many manifests there are.

    python -m benchmarks.manager [--sizes N …] [--rounds N] [--database NAME] [--plans]

1,000 manifests are due among 1,000 to 1,000,000 enabled ones (SQLite: to 100,000), every one of
them is queued. The databases take turns, so that whatever else the machine does hits them alike.

Targets: among 1,000,000 at most 1.5 × the cost among 10,000; with nothing due among 1,000,000 at
most 2 × the cost among 1,000; no statement reads a table of manifests whole; a million finished
executions cost at most 10 %.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import make_url, text

from benchmarks._many_manifests import GROUPS, fill, make_due, sequentially_read
from benchmarks._plans import explained
from benchmarks._processor import Processor, postmaster_of
from headway.config import Settings
from headway.manager.cycle import ManifestManager
from headway.observe import Observer
from headway.store import wakes
from headway.store.engine import Store
from headway.store.wakes import Scope
from tests.postgres_server import PostgresServer, private_server

DUE = 1000
LARGE = 100 * DUE
WARM_UPS = 3
SIZES = (1_000, 10_000, 100_000, 1_000_000)
LARGEST_ON_SQLITE = 100_000
HISTORY_OF = 10_000
IDLE_CYCLES = 20
SETTINGS = Settings(max_work_queue_entries_per_cycle=None)


@dataclass
class Subject:
    """One database with its manifests, and what its cycles cost so far, in milliseconds."""

    name: str
    store: Store
    manifests: int
    finished: int = 0
    postmaster: int | None = None
    busy: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._manager = ManifestManager(self.store, SETTINGS, Observer())

    @property
    def rows(self) -> dict[str, int]:
        """How large the tables are that grow with manifests and with time."""
        return {
            "headway_manifest": self.manifests,
            "headway_manifest_state": self.manifests,
            "headway_execution_history": self.finished,
        }

    def cycle(self, expected: int | None = None) -> float:
        began = time.perf_counter()
        queued = self._manager.run_once().queued
        took = (time.perf_counter() - began) * 1000
        assert expected in (None, queued), f"{self.name}: queued {queued}, not {expected}"
        return took

    def make_due(self, number: int) -> None:
        """A thousand, spread over the whole table, and others each time."""
        apart = self.manifests // DUE
        make_due(self.store, range(1 + number % apart, self.manifests + 1, apart))

    def round(self, number: int) -> None:
        """One cycle with a thousand due, then some with nothing due."""
        self.make_due(number)
        used = Processor(self.postmaster)
        busy = self.cycle(DUE)
        processor = (used.here() + used.server()) * 1000
        idle = [self.cycle(0) for _ in range(IDLE_CYCLES)]
        if number >= WARM_UPS:
            self.busy.append(busy)
            self.processor.append(processor)
            self.idle.append(statistics.median(idle))


def measure(subjects: Sequence[Subject], rounds: int) -> None:
    for number in range(WARM_UPS + rounds):
        for subject in subjects if number % 2 else reversed(subjects):
            subject.round(number)


def report(subjects: Sequence[Subject]) -> None:
    for subject in subjects:
        busy = statistics.median(subject.busy)
        say(
            f"{subject.name:32} {busy:9.1f} {min(subject.busy):8.1f} {max(subject.busy):8.1f}"
            f" {statistics.median(subject.idle):9.2f} {statistics.median(subject.processor):9.1f}"
        )


def compare(what: str, costs: Sequence[float], base: Sequence[float], target: float) -> None:
    """By the lower quartiles: whatever else the machine does only ever adds to a cost."""
    ratio = statistics.quantiles(costs, n=4)[0] / statistics.quantiles(base, n=4)[0]
    verdict = "ok" if ratio <= target else "MISSED"
    say(f"{what}: {ratio:.2f} × (target: at most {target} ×) {verdict}")


def check_no_table_is_read_whole(subject: Subject) -> None:
    """What the server counted in some cycles, after the driver has prepared its statements."""
    read: Counter[str] = Counter()
    for number in range(WARM_UPS):
        subject.make_due(number)
        before = sequentially_read(subject.store)
        subject.cycle(DUE)
        subject.cycle(0)
        read += sequentially_read(subject.store) - before
    say(f"{subject.name}: rows read by sequential scans in {2 * WARM_UPS} cycles: {dict(read)}")
    for table, rows in subject.rows.items():
        # Where a tenth of the rows is wanted, reading all of them is the quickest way.
        assert rows < LARGE or read[table] < rows, f"{table} was read whole: {read[table]} rows"


def show_plans(subject: Subject) -> None:
    subject.make_due(0)
    say(f"{subject.name}: the statements of a cycle and how they read")
    for line in explained(subject.store, lambda: subject.cycle(DUE)):
        say(line)


def wake_a_group(subject: Subject) -> None:
    """What the first cycle costs after a tenth of all manifests were woken together."""
    with subject.store.writing() as tx:
        wakes.leave_wakes(tx, [(1, Scope.GROUP)])
    took = subject.cycle()
    say(f"{subject.name}: a group of {subject.manifests // GROUPS:,} woken: {took:.1f} ms a cycle")


def on_postgresql(options: argparse.Namespace) -> None:
    with private_server(durable=True) as server, ExitStack() as closing:
        open_one = opener(closing, lambda name: new_database(server, name), postmaster_of(server))
        subjects = [open_one(size) for size in options.sizes if size <= options.largest]
        largest = subjects[-1]
        measure(subjects, options.rounds)
        report(subjects)
        verdicts(subjects)
        grown = compare_history(open_one, options)
        for subject in (largest, grown) if largest.manifests > DUE else (grown,):
            check_no_table_is_read_whole(subject)
            if options.plans:
                show_plans(subject)
        wake_a_group(largest)


def on_sqlite(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as closing:
        open_one = opener(closing, lambda name: f"sqlite:///{Path(directory, name)}.db")
        largest = min(options.largest, LARGEST_ON_SQLITE)
        subjects = [open_one(size) for size in options.sizes if size <= largest]
        measure(subjects, options.rounds)
        report(subjects)
        verdicts(subjects)
        compare_history(open_one, options)


def verdicts(subjects: Sequence[Subject]) -> None:
    smallest, largest = subjects[0], subjects[-1]
    ten_thousand = next((one for one in subjects if one.manifests == 10_000), smallest)
    among = f"among {largest.manifests:,} against {{:,}}"
    compare(
        "1,000 due " + among.format(ten_thousand.manifests), largest.busy, ten_thousand.busy, 1.5
    )
    compare(
        "the same by processor time",
        largest.processor,
        ten_thousand.processor,
        1.5,
    )
    compare("nothing due " + among.format(smallest.manifests), largest.idle, smallest.idle, 2)


def compare_history(open_one: Callable[..., Subject], options: argparse.Namespace) -> Subject:
    manifests = min(HISTORY_OF, options.largest)
    runs = options.finished // manifests
    pair = [open_one(manifests, name="fresh"), open_one(manifests, runs, name="with_history")]
    measure(pair, options.rounds * 2)  # ten per cent are little in the noise of a shared machine
    report(pair)
    fresh, grown = pair
    compare(f"1,000 due, {runs * manifests:,} finished executions", grown.busy, fresh.busy, 1.1)
    compare(f"nothing due, {runs * manifests:,} finished executions", grown.idle, fresh.idle, 1.1)
    return grown


def opener(
    closing: ExitStack, url_of: Callable[[str], str], postmaster: int | None = None
) -> Callable[..., Subject]:
    def open_one(manifests: int, runs_of_each: int = 0, name: str = "") -> Subject:
        store = Store(url_of(name or f"among_{manifests}"))
        closing.callback(store.close)
        fill(store, manifests, runs_of_each)
        kind = "postgresql" if store.on_postgresql else "sqlite"
        said = f"{kind}, among {manifests:,}" + (f", {name.replace('_', ' ')}" if name else "")
        return Subject(said, store, manifests, manifests * runs_of_each, postmaster)

    return open_one


def new_database(server: PostgresServer, name: str) -> str:
    store = Store(server.url())
    with store.notifying() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    store.close()
    return make_url(server.url(name)).render_as_string(hide_password=False)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="most manifests")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="how many manifests")
    parser.add_argument("--finished", type=int, default=1_000_000, help="executions in the history")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--database", choices=("postgresql", "sqlite", "both"), default="both")
    parser.add_argument("--plans", action="store_true", help="show how each statement is executed")
    options = parser.parse_args()
    say(f"{'milliseconds of one cycle':32} 1,000 due      min      max  none due processor")
    if options.database != "sqlite":
        on_postgresql(options)
    if options.database != "postgresql":
        on_sqlite(options)


if __name__ == "__main__":
    main()
