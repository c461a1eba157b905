"""What waits for workflows that no living server knows."""

from __future__ import annotations

from datetime import timedelta

from headway.domain.work_queue import Source
from headway.store import unknown_workflows, work_queue
from headway.store.engine import Store
from headway.store.unknown_workflows import Seen
from tests.store.factories import NOON, Clock, a_manifest, declare, queue, queue_ad_hoc, started

HOUR = timedelta(hours=1)


def test_what_the_last_look_found_is_kept(store: Store, clock: Clock) -> None:
    with store.writing() as tx:
        assert unknown_workflows.last_seen(tx) == Seen(None, {})
        unknown_workflows.note_seen(tx, {"old": NOON - HOUR, "gone": NOON})
    now = clock.advance(minutes=1)
    with store.writing() as tx:
        unknown_workflows.note_seen(tx, {"old": NOON - HOUR})
        assert unknown_workflows.last_seen(tx) == Seen(now, {"old": NOON - HOUR})


def test_what_is_queued_is_counted_by_workflow(store: Store) -> None:
    ids = declare(store, a_manifest("a", workflow="x"), a_manifest("b", workflow="y"))
    for _ in range(2):
        queue(store, "a", source=Source.TRIGGER)
    queue_ad_hoc(store, scheduled_at=NOON + HOUR)
    queue(store, "b")
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["b"]], "not today")
    with store.reading() as tx:
        assert unknown_workflows.queued_by_workflow(tx) == {"x": 2, "work": 1}


def test_what_waits_since_before_comes_oldest_first(store: Store, clock: Clock) -> None:
    clock.now = NOON + HOUR
    second = queue_ad_hoc(store)
    clock.now = NOON
    first = queue_ad_hoc(store, scheduled_at=NOON + HOUR)
    queue_ad_hoc(store, scheduled_at=NOON + HOUR + timedelta(seconds=1))
    queue_ad_hoc(store, workflow="known")
    clock.now = NOON + HOUR + timedelta(seconds=1)
    queue_ad_hoc(store)
    declare(store, "extract")
    started(store)

    def found(moment: timedelta = HOUR, limit: int = 10) -> list[int]:
        with store.reading() as tx:
            return unknown_workflows.queued_before(tx, ["work", "lost"], NOON + moment, limit)

    assert found() == [first, second]
    assert found(limit=1) == [first]
    assert found(timedelta()) == []
    with store.reading() as tx:
        assert unknown_workflows.queued_before(tx, [], clock.now, 10) == []
