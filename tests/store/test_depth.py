"""How much is counted as waiting before more is queued."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from headway.domain.manifest import Group
from headway.domain.work_queue import NewEntry, Source
from headway.store import removal, work_queue
from headway.store.engine import Store
from headway.store.reading import depth
from headway.store.transaction import Transaction
from tests.store.factories import (
    NOBODY,
    NOON,
    a_manifest,
    declare,
    manifest_ids,
    queue,
    queue_ad_hoc,
    ran,
    started,
)

LATER = NOON + timedelta(hours=1)
MOST = 100


def asked(store: Store, ask: Callable[[Transaction], int]) -> int:
    with store.reading() as tx:
        return ask(tx)


@pytest.fixture
def waiting(store: Store) -> Store:
    """In one group two entries of load and one of extract are ready, and four of load are not;
    elsewhere waits one, and two have no manifest."""
    group = Group("etl")
    declare(
        store,
        a_manifest("extract", group=group),
        a_manifest("load", group=group),
        a_manifest("report", group=Group("reports")),
    )
    for name in ("extract", "load", "load", "report"):
        queue(store, name, source=Source.TRIGGER)
    for _ in range(4):
        queue(store, "load", source=Source.TRIGGER, scheduled_at=LATER)
    for scheduled_at in (None, None, LATER):
        queue_ad_hoc(store, scheduled_at=scheduled_at)
    return store


def test_of_a_group_what_may_start_is_counted(waiting: Store) -> None:
    assert asked(waiting, lambda tx: depth.of_group(tx, "etl", MOST)) == 3
    assert asked(waiting, lambda tx: depth.of_group(tx, "etl", 2)) == 2
    assert asked(waiting, lambda tx: depth.of_group(tx, "reports", MOST)) == 1
    assert asked(waiting, lambda tx: depth.of_group(tx, "nobody's", MOST)) == 0
    assert asked(waiting, lambda tx: depth.of_group(tx, "\x00", MOST)) == 0


def test_beside_a_manifest_its_group_or_all_of_its_own_is_counted(waiting: Store) -> None:
    def beside(name: str) -> int:
        return asked(waiting, lambda tx: depth.beside_manifest(tx, name, MOST))

    assert (beside("extract"), beside("load"), beside("report")) == (3, 6, 1)
    assert (beside("nobody"), beside("\x00")) == (0, 0)
    with waiting.writing() as tx:
        removal.remove(tx, [manifest_ids(waiting)["load"]])
    assert beside("load") == 0


def test_beside_an_execution_its_group_is_counted(waiting: Store) -> None:
    ended, live = ran(waiting, "report"), started(waiting, "extract", source=Source.RERUN)
    with waiting.writing() as tx:
        [entry] = work_queue.dispatch(tx, [queue_in(tx)]).values()
    with waiting.reading() as tx:
        found = [
            depth.beside_execution(tx, key, MOST) for key in (ended.id, live.id, entry, NOBODY)
        ]
    assert found == [1, 3, 2, 2]


def queue_in(tx: Transaction) -> int:
    entry = NewEntry("work", Source.AD_HOC, "null")
    return work_queue.enqueue(tx, [entry])[0]


def test_without_a_manifest_what_has_no_group_is_counted(waiting: Store) -> None:
    assert asked(waiting, lambda tx: depth.of_nobody(tx, MOST)) == 2
    assert asked(waiting, lambda tx: depth.of_nobody(tx, 1)) == 1


def test_what_has_ended_or_was_dispatched_waits_no_longer(waiting: Store) -> None:
    ids = manifest_ids(waiting)
    with waiting.writing() as tx:
        work_queue.cancel_queued(tx, [ids["load"]], "not today")
    started(waiting, "extract", source=Source.RERUN)
    assert asked(waiting, lambda tx: depth.of_group(tx, "etl", MOST)) == 1
