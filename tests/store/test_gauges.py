"""How much there is of everything is counted once, and of the largest groups by name."""

from __future__ import annotations

from datetime import timedelta

from headway.domain.manifest import Group
from headway.domain.work_queue import Source
from headway.store import leases, work_queue
from headway.store.engine import Store
from headway.store.gauges import Gauges, read_gauges
from headway.store.servers import ServerProcess
from tests.store.factories import (
    NOON,
    Clock,
    a_manifest,
    dead_letter_for,
    declare,
    dispatched,
    queue,
    queue_ad_hoc,
    started,
)


def gauges(store: Store, groups: int = 10) -> Gauges:
    with store.reading() as tx:
        return read_gauges(tx, groups)


def filled(store: Store, clock: Clock) -> None:
    names = {"etl": ["a", "b", "c"], "web": ["d", "e"], "own": ["own"]}
    declare(
        store,
        *(a_manifest(name, group=Group(group)) for group in names for name in names[group]),
    )
    started(store, "a")
    started(store, "b")
    dispatched(store, "c")
    queue_ad_hoc(store, scheduled_at=NOON + timedelta(hours=1))
    clock.advance(minutes=1)
    queue(store, "c")
    clock.advance(minutes=1)
    for name in ("d", "e", "own"):
        queue(store, name, source=Source.TRIGGER)
    dead_letter_for(store, "e")
    with store.writing() as tx:
        for name, slots, seconds in (("one", 2, 600), ("two", 3, 600), ("dead", 9, 1)):
            process = ServerProcess(name, "host", 1, ["executor"], ["work"], slots)
            leases.register(tx, process, timedelta(seconds=seconds))
    clock.advance(minutes=1)


def test_everything_is_counted(store: Store, clock: Clock) -> None:
    filled(store, clock)
    assert gauges(store) == Gauges(
        ready=4,
        delayed=1,
        pending=1,
        running=2,
        dead_letters=1,
        servers=2,
        slots=5,
        waiting_seconds=120.0,
        groups={"etl": (1, 2), "web": (2, 0)},
    )


def test_of_more_groups_than_wanted_the_largest_are_named(store: Store, clock: Clock) -> None:
    filled(store, clock)
    assert gauges(store, groups=1).groups == {"etl": (1, 2)}
    assert gauges(store, groups=2).groups == {"etl": (1, 2), "web": (2, 0)}


def test_an_empty_store_has_nothing(store: Store) -> None:
    assert gauges(store) == Gauges()


def test_an_entry_waits_since_its_own_time_and_never_less_than_not_at_all(
    store: Store, clock: Clock
) -> None:
    queue_ad_hoc(store, scheduled_at=NOON - timedelta(minutes=1))
    assert gauges(store).waiting_seconds == 60.0
    clock.advance(minutes=-5)
    assert gauges(store).waiting_seconds == 0.0


def test_what_has_ended_in_the_queue_does_not_wait(store: Store) -> None:
    ids = declare(store, "extract")
    queue(store)
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["extract"]], "not today")
    assert gauges(store) == Gauges()
