"""Drives headway in a process of its own, as a user's application does."""

import importlib
import time
from datetime import timedelta
from typing import Any

from benchmarks._many_manifests import fill, make_due
from benchmarks.declarations import one_turn
from benchmarks.peers.telling import asked, drive, peak_mb, tell
from headway import Group, Headway, Item, every
from headway.collector import spare_the_collector
from headway.config import Settings
from headway.manager.cycle import ManifestManager
from headway.manager.sweep import Sweep
from headway.observe import Observer
from headway.service import Service
from headway.store.engine import Store
from headway.store.migrate import migrate

NAME = "benchmark"
NOT_YET = "at_first_occurrence"

Options = dict[str, Any]


def application(options: Options) -> Headway:
    """A workflow that does nothing, and the settings of this measurement."""
    hw = Headway(NAME, database_url=options["url"], **options.get("settings", {}))
    tells = options.get("tell_starts", False)

    def started() -> None:
        if tells:
            tell(at=time.monotonic())

    def noop(number: int) -> None:
        started()

    async def noop_async(number: int) -> None:
        started()

    hw.workflow("noop")(noop if options.get("sync") else noop_async)
    if options.get("traced"):
        # Imported where it is measured alone: it costs memory and time at the start.
        importlib.import_module("benchmarks.comparison.tracing").trace(hw)
    return hw


def connect(store: Store) -> None:
    """Before the clock runs, as the peers do."""
    with store.reading():
        pass


def made_tables(hw: Headway) -> None:
    store = hw.open_store()
    migrate(store)
    store.close()


def prepare(options: Options) -> None:
    """Make the tables, and manifests in groups with caps: a deployment at rest, nothing due."""
    hw = application(options)
    made_tables(hw)
    of_each = -(-options["manifests"] // options["groups"])  # rounded up
    for group in range(options["groups"] if of_each else 0):
        hw.runtime.schedule_many(
            "noop",
            f"group-{group}",
            [Item(str(number), number) for number in range(of_each)],
            every(hours=24),
            first_run=NOT_YET,
            group=Group(f"group-{group}", max_active_jobs=options["cap"]),
        )
    settle(hw)
    tell(prepared=True)


def settle(hw: Headway) -> None:
    """What the manager does once, when manifests are new."""
    store = hw.open_store()
    manager = ManifestManager(store, hw.settings, hw.observer)
    while (looked := manager.run_once()).due_in is not None and looked.due_in <= timedelta(0):
        pass
    sweep = Sweep(store, hw.settings, hw.observer)
    while sweep.run_once().hurry:
        pass
    store.close()


def enqueue(options: Options) -> None:
    """Queue a run of each manifest, a group in each call; without groups, runs of the workflow."""
    hw = application(options)
    connect(hw.runtime.store)
    groups, jobs = options["groups"], options["jobs"]
    started = time.perf_counter()
    if groups:
        queued = sum(hw.trigger_group(f"group-{group}") for group in range(groups))
    else:
        queued = hw.enqueue_many("noop", range(jobs))
    seconds = time.perf_counter() - started
    assert queued == options["jobs"], queued
    tell(seconds=seconds, peak_mb=peak_mb())


def work(options: Options) -> None:
    """All roles, as `headway run`, until told to stop."""
    service = Service(application(options))
    spare_the_collector()
    connect(service.store)
    tell(started_at=time.time())
    service.start()
    for _ in asked():
        pass
    service.stop()
    tell(peak_mb=peak_mb())


def ask(options: Options) -> None:
    """Trigger another manifest at each line that comes; without groups, run the workflow."""
    hw = application(options)
    connect(hw.runtime.store)
    tell(ready=True)
    for line in asked():
        groups = options["groups"]
        at = time.monotonic()
        if groups:
            of_each, group = divmod(int(line), groups)
            hw.trigger(f"group-{group}-{of_each}")
        else:
            hw.enqueue("noop", int(line))
        tell(at=at)
    tell(peak_mb=peak_mb())


def tick(options: Options) -> None:
    """At each line, one cycle of the manager, with so many manifests due as the line says."""
    store = Store(options["url"])
    manifests = options["schedules"]
    fill(store, manifests)
    manager = ManifestManager(store, Settings(max_work_queue_entries_per_cycle=None), Observer())
    tell(ready=True)
    for number, line in enumerate(asked()):
        due = int(line)
        apart = manifests // due
        make_due(store, range(1 + number % apart, manifests + 1, apart))
        started = time.perf_counter()
        queued = manager.run_once().queued
        tell(milliseconds=1000 * (time.perf_counter() - started))
        assert queued == due, queued
    store.close()
    tell(peak_mb=peak_mb())


def register(options: Options) -> None:
    """What a process does at its start: declare everything, and apply it."""
    turn = one_turn(options["url"], options["schedules"], 0)
    tell(seconds=turn.seconds, peak_mb=turn.peak_mb)


def prepare_fan_out(options: Options) -> None:
    """One manifest, and many that run after it."""
    hw = application(options)
    made_tables(hw)
    hw.runtime.schedule("noop", "parent", 0, every(hours=24), first_run=NOT_YET)
    hw.runtime.schedule_many_dependent(
        "noop",
        "child",
        [Item(str(n), n, depends_on="parent") for n in range(options["children"])],
        group=Group("children", max_active_jobs=options["cap"]),
    )
    tell(prepared=True)


def trigger(options: Options) -> None:
    """Trigger one manifest."""
    application(options).trigger(options["manifest"])
    tell(triggered=True)


ACTIONS = (prepare, enqueue, work, ask, tick, register, prepare_fan_out, trigger)

if __name__ == "__main__":
    drive({action.__name__: action for action in ACTIONS})
