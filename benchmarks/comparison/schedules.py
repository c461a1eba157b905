"""Many schedules: registering them, and one look at what is due."""

from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks.comparison.bench import Bench
from benchmarks.comparison.databases import settle
from benchmarks.comparison.draining import prepared
from benchmarks.comparison.measurements import Row
from benchmarks.comparison.progress import say
from benchmarks.comparison.subjects import Subject, apscheduler, headway, pgqueuer, procrastinate

DUE = (100, 1_000)
WARM_UPS = 1
# The most schedules of which so many are due, for whom more would take minutes.
MOST = {
    100: {"pgqueuer": 10_000, "procrastinate": 10_000, "apscheduler": 100_000},
    1_000: {"pgqueuer": 1_000, "procrastinate": 1_000, "apscheduler": 100_000},
}
MOST_ON_SQLITE = 100_000
MOST_REGISTERED = {"pgqueuer": 10_000, "apscheduler": 1_000}


def measure_ticks(bench: Bench) -> None:
    """All of them have their schedules on the same server, and take turns with their ticks."""
    for schedules in bench.sizes.schedules:
        subjects = within(schedules, MOST[DUE[0]], everybody())
        with ExitStack() as running:
            drivers = {}
            for subject in bench.present(subjects):
                say(f"{subject.name}: preparing {schedules:,} schedules")
                url = running.enter_context(bench.database(subject))
                if subject.software in ("pgqueuer", "procrastinate"):
                    bench.told(subject, "prepare", url=url)
                options = {"url": url, "schedules": schedules}
                driver = running.enter_context(bench.driver(subject, "tick", **options))
                driver.hear()
                settle(url)
                drivers[subject.name] = driver
            for due in (due for due in DUE if due <= schedules):
                row = Row("ticks", f"tick, {due:,} due of {schedules:,}", "ms")
                able = within(schedules, MOST[due], subjects)
                for subject in bench.in_turn(row.title, able, warm_ups=WARM_UPS):
                    drivers[subject.name].send(due)
                    bench.note(row, subject, drivers[subject.name].hear()["milliseconds"])


def measure_registering(bench: Bench) -> None:
    """Each process starts anew, as after a deployment: once with nothing there, once unchanged."""
    for schedules in bench.sizes.schedules:
        anew, again, memory = (
            Row("registering", f"{what} {schedules:,}", unit)
            for what, unit in (
                ("registering", "s"),
                ("registering unchanged", "s"),
                ("peak memory, registering", "MB"),
            )
        )
        subjects = [headway(), pgqueuer(), apscheduler(), headway(on_sqlite=True)]
        for subject in bench.in_turn(anew.title, within(schedules, MOST_REGISTERED, subjects)):
            with prepared(bench, subject, 0) as url:
                first = bench.told(subject, "register", url=url, schedules=schedules)
                settle(url)
                second = bench.told(subject, "register", url=url, schedules=schedules)
            bench.note(anew, subject, first["seconds"])
            bench.note(again, subject, second["seconds"])
            bench.note(memory, subject, max(first["peak_mb"], second["peak_mb"]))


def everybody() -> list[Subject]:
    """Whoever has schedules."""
    return [headway(), pgqueuer(), procrastinate(), apscheduler()]


def within(schedules: int, most: dict[str, int], subjects: Sequence[Subject]) -> list[Subject]:
    """Whoever comes to an end with so many in bearable time."""
    return [
        one
        for one in subjects
        if schedules <= (MOST_ON_SQLITE if one.on_sqlite else most.get(one.software, schedules))
    ]
