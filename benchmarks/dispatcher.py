"""What a cycle of the JobDispatcher costs: by what it dispatches, not by what is queued.

    python -m benchmarks.dispatcher [--quick] [--rounds N] [--database NAME] [--plans]

Entries dispatched per second with 100 queued in 10 groups and with 100,000 queued in 10,000,
without limits and with them (a global one, and a cap for each group). With nothing in its way a
cycle takes as much as it reads at once, 1,000 entries. For comparison the same with 100 free slots
in each cycle: there the walk over 10,000 groups is shared by fewer entries. Subjects take turns
within a round, so that whatever else the machine does hits them alike; ratios are of one run.

Targets: with the deep backlog at most 1.5 × slower; exact limits cost at most 10 %.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import make_url, text

from benchmarks._deep_queue import end_all, fill_groups, queue_all
from benchmarks._plans import explained
from headway.config import Settings
from headway.dispatcher.cycle import JobDispatcher
from headway.observe import Observer
from headway.servers.local import LocalServer
from headway.store.engine import Store
from tests.postgres_server import PostgresServer, private_server

WARM_UPS = 2
SHALLOW = (100, 10)
DEEP = (100_000, 10_000)
QUICK = (2_000, 200)
FEW = 100
AMPLE = 1_000_000
SLOWER, PRICE = 1.5, 1.1
CYCLES = 10


@dataclass
class Subject:
    """One database with its queue, and what dispatching one entry cost so far, in microseconds."""

    name: str
    store: Store
    entries: int
    settings: Settings
    costs: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        server = LocalServer(lambda: None)
        self._dispatcher = JobDispatcher(self.store, self.settings, Observer(), server)

    def cycle(self) -> tuple[int, float]:
        began = time.perf_counter()
        dispatched = len(self._dispatcher.run_once().dispatched)
        return dispatched, time.perf_counter() - began

    def round(self, *, counts: bool) -> None:
        """Some cycles from a full queue; all jobs end at once after each."""
        spent, left = 0.0, 0
        taken = 0
        for _ in range(CYCLES):
            if left == 0:
                queue_all(self.store)
                left = self.entries
            dispatched, seconds = self.cycle()
            assert dispatched > 0, f"{self.name}: nothing dispatched"
            end_all(self.store)
            taken, spent, left = taken + dispatched, spent + seconds, left - dispatched
        if counts:
            self.costs.append(spent / taken * 1_000_000)


def measure(subjects: Sequence[Subject], rounds: int) -> None:
    for number in range(WARM_UPS + rounds):
        for subject in subjects if number % 2 else reversed(subjects):
            subject.round(counts=number >= WARM_UPS)


def report(subjects: Sequence[Subject]) -> None:
    for subject in subjects:
        cost = statistics.median(subject.costs)
        say(
            f"{subject.name:56} {1_000_000 / cost:9,.0f} entries/s"
            f" {cost:8.1f} µs ({min(subject.costs):.1f} to {max(subject.costs):.1f})"
        )


def compare(what: str, one: Subject, base: Subject, target: float) -> None:
    """By the lower quartiles: whatever else the machine does only ever adds to a cost."""
    costs = [statistics.quantiles(subject.costs, n=4)[0] for subject in (one, base)]
    ratio = costs[0] / costs[1]
    verdict = "ok" if ratio <= target else "MISSED"
    say(f"{what}: {ratio:.2f} × (target: at most {target} ×) {verdict}")


def run(open_store: Callable[[str], Store], kind: str, options: argparse.Namespace) -> None:
    deep = QUICK if options.quick else DEEP

    def subject(size: tuple[int, int], cap: int | None, limit: int | None, said: str) -> Subject:
        entries, groups = size
        store = open_store(f"of_{entries}_{said.replace(' ', '_')}")
        fill_groups(store, entries, groups, cap)
        name = f"{kind}, {entries:,} queued in {groups:,} groups, {said}"
        return Subject(name, store, entries, Settings(max_active_jobs=limit))

    shallow = subject(SHALLOW, None, None, "no limits")
    backlog = subject(deep, None, None, "no limits")
    limited = subject(deep, AMPLE, AMPLE, "limits")
    few = subject(deep, AMPLE, FEW, f"{FEW} slots")
    subjects = [shallow, backlog, limited, few]
    measure(subjects, options.rounds)
    report(subjects)
    compare("deep backlog against shallow", backlog, shallow, SLOWER)
    compare("exact limits against none", limited, backlog, PRICE)
    compare(f"deep backlog and {FEW} slots in each cycle, for comparison", few, shallow, SLOWER)
    if options.plans and kind == "postgresql":
        queue_all(backlog.store)
        for line in explained(backlog.store, backlog.cycle):
            say(line)


def on_postgresql(options: argparse.Namespace) -> None:
    with private_server(durable=True) as server, ExitStack() as closing:

        def open_store(name: str) -> Store:
            store = Store(new_database(server, name))
            closing.callback(store.close)
            return store

        run(open_store, "postgresql", options)


def on_sqlite(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as closing:

        def open_store(name: str) -> Store:
            store = Store(f"sqlite:///{Path(directory, name)}.db")
            closing.callback(store.close)
            return store

        run(open_store, "sqlite", options)


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
    parser.add_argument("--quick", action="store_true", help="2,000 entries in 200 groups")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--database", choices=("postgresql", "sqlite", "both"), default="both")
    parser.add_argument("--plans", action="store_true", help="show how each statement is executed")
    options = parser.parse_args()
    if options.database != "sqlite":
        on_postgresql(options)
    if options.database != "postgresql":
        on_sqlite(options)


if __name__ == "__main__":
    main()
