"""What may be dispatched now, and in which order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.manifest import Group
from headway.domain.routing import Share
from headway.domain.work_queue import Source, WorkQueueEntry
from headway.store import delays, executions, work_queue
from headway.store.engine import Store
from tests.store.factories import (
    NOON,
    Clock,
    a_manifest,
    change_group,
    change_manifest,
    dead_letter_for,
    declare,
    dispatched,
    entry_for,
    finish,
    queue,
    queue_ad_hoc,
    started,
)


def ready(store: Store, per_group: int | None = None, in_total: int = 100) -> list[WorkQueueEntry]:
    with store.reading() as tx:
        return work_queue.dispatchable(tx, per_group, in_total)


def names(entries: list[WorkQueueEntry]) -> list[str | None]:
    return [entry.external_id for entry in entries]


def test_an_empty_queue_offers_nothing(store: Store) -> None:
    assert ready(store) == []


def test_the_order_is_group_priority_then_entry_priority_then_age(
    store: Store, clock: Clock
) -> None:
    low, high = Group("low", priority=1), Group("high", priority=20)
    names_in = {"low": ["l1", "l2"], "high": ["h1", "h2", "h3", "h4"]}
    declare(
        store,
        *(a_manifest(name, group=low) for name in names_in["low"]),
        *(a_manifest(name, group=high) for name in names_in["high"]),
        groups=[low, high],
    )
    queue(store, "l1", priority=31)
    queue(store, "h1", priority=5)
    queue(store, "h2", priority=5)
    clock.advance(seconds=-10)
    queue(store, "h3", priority=5)
    queue(store, "h4", priority=6)
    queue(store, "l2", priority=0)
    assert names(ready(store)) == ["h4", "h3", "h1", "h2", "l1", "l2"]
    assert names(ready(store, in_total=3)) == ["h4", "h3", "h1"]


def test_each_group_shows_only_its_best(store: Store) -> None:
    groups = [Group("big", priority=9), Group("small", 4, 1)]
    declare(
        store,
        *(a_manifest(f"big-{number}", group=groups[0]) for number in range(5)),
        *(a_manifest(f"small-{number}", group=groups[1]) for number in range(2)),
        groups=groups,
    )
    for number in range(5):
        queue(store, f"big-{number}", priority=number)
    for number in range(2):
        queue(store, f"small-{number}")
    assert names(ready(store, per_group=2)) == ["big-4", "big-3", "small-0", "small-1"]
    assert names(ready(store, per_group=1)) == ["big-4", "small-0"]
    big, small = ready(store, per_group=1)
    assert (big.group_name, big.group_priority, big.group_max_active_jobs) == ("big", 9, None)
    assert (small.group_name, small.group_priority, small.group_max_active_jobs) == ("small", 1, 4)


def test_one_entry_per_manifest_and_batch(store: Store) -> None:
    declare(store, "extract", "load")
    queue(store)
    later = [queue(store, source=Source.TRIGGER, priority=number) for number in (3, 9)]
    assert [entry.id for entry in ready(store, per_group=1)] == [later[1]]
    queue(store, "load")
    assert names(ready(store)) == ["extract", "load"]


@pytest.mark.story(49)
def test_a_manifest_that_runs_waits_and_its_entries_hide_nobody(store: Store) -> None:
    declare(store, "extract", "load")
    one = started(store, "extract")
    for _ in range(3):
        queue(store, "extract", source=Source.TRIGGER, priority=31)
    queue(store, "load")
    assert names(ready(store, per_group=1, in_total=1)) == ["load"]
    finish(store, one)
    assert names(ready(store)) == ["extract", "load"]


def test_a_pending_execution_holds_its_manifest_as_well(store: Store) -> None:
    declare(store, "extract")
    dispatched(store)
    queue(store)
    assert ready(store) == []


def test_a_delayed_entry_waits_for_its_time(store: Store, clock: Clock) -> None:
    declare(store, "extract", "load")
    queue(store, "extract", scheduled_at=NOON + timedelta(minutes=30), priority=31)
    queue(store, "extract", source=Source.TRIGGER)
    queue(store, "load", scheduled_at=NOON + timedelta(hours=1))
    assert [entry.source for entry in ready(store)] == [Source.TRIGGER]
    with store.reading() as tx:
        assert delays.next_scheduled_at(tx) == NOON + timedelta(minutes=30)
    clock.advance(minutes=30)
    assert [entry.source for entry in ready(store)] == [Source.SCHEDULE]
    with store.reading() as tx:
        assert delays.next_scheduled_at(tx) == NOON + timedelta(hours=1)
    clock.advance(minutes=30)
    assert names(ready(store)) == ["extract", "load"]
    with store.reading() as tx:
        assert delays.next_scheduled_at(tx) is None


@pytest.mark.parametrize("source", [Source.SCHEDULE, Source.ACTIVATION, Source.TRIGGER])
def test_a_disabled_group_stops_every_entry_of_its_manifests(store: Store, source: Source) -> None:
    declare(store, "extract", a_manifest("load", group=Group("loads")))
    queue(store, "extract", source=source)
    queue(store, "load", source=source)
    change_group(store, "etl", enabled=False)
    assert names(ready(store)) == ["load"]


@pytest.mark.parametrize(
    ("source", "stopped"),
    [
        (Source.SCHEDULE, True),
        (Source.DEPENDENT, True),
        (Source.ACTIVATION, True),
        (Source.TRIGGER, False),
        (Source.RERUN, False),
        (Source.REQUEUE, False),
    ],
)
def test_a_disabled_or_dead_lettered_manifest_stops_automatic_entries_only(
    store: Store, source: Source, stopped: bool
) -> None:
    declare(store, "disabled", "dead", "fine")
    for name in ("disabled", "dead", "fine"):
        queue(store, name, source=source)
    change_manifest(store, "disabled", enabled=False)
    dead_letter_for(store, "dead")
    assert names(ready(store)) == (["fine"] if stopped else ["disabled", "dead", "fine"])


def test_a_better_entry_that_cannot_run_hides_no_other_of_its_manifest(
    store: Store, clock: Clock
) -> None:
    names_of = ("disabled", "dead", "unknown", "moved", "later")
    declare(store, *names_of, a_manifest("shut", group=Group("shut")))
    change_group(store, "shut", enabled=False)
    with store.reading() as tx:
        shut = entry_for(tx, "shut").group_id
    better: dict[str, dict[str, Any]] = {
        "unknown": {"workflow": "unknown"},
        "moved": {"group_id": shut},
        "later": {"scheduled_at": NOON + timedelta(hours=1)},
    }
    for name in names_of:
        queue(store, name, priority=9, **better.get(name, {}))
        queue(store, name, source=Source.TRIGGER, priority=1)
    change_manifest(store, "disabled", enabled=False)
    dead_letter_for(store, "dead")
    with store.reading() as tx:
        taken = [Share(frozenset({"work"}))]
        found = work_queue.dispatchable(tx, None, 100, taken=taken)
    assert sorted(names(found), key=str) == sorted(names_of)
    assert {entry.priority for entry in found} == {1}


def test_what_is_due_is_offered_before_it_is_put_into_the_order(store: Store, clock: Clock) -> None:
    declare(store, "open", a_manifest("shut", group=Group("shut")))
    for name in ("open", "shut"):
        queue(store, name, scheduled_at=NOON + timedelta(hours=1))
    change_group(store, "shut", enabled=False)
    assert ready(store) == []
    clock.advance(hours=1)
    assert names(ready(store)) == ["open"]
    change_group(store, "shut", enabled=True)
    assert names(ready(store)) == ["open", "shut"]


def test_a_removed_manifest_is_never_dispatched(store: Store) -> None:
    declare(store, "extract")
    queue(store, source=Source.TRIGGER)
    change_manifest(store, "extract", removed_at=NOON)
    assert ready(store) == []


def test_ad_hoc_entries_have_no_group_and_repeat(store: Store) -> None:
    declare(store, "extract", groups=[Group("etl", priority=3)])
    first, second = queue_ad_hoc(store, priority=9), queue_ad_hoc(store)
    scheduled = queue(store)
    entries = ready(store)
    assert [entry.id for entry in entries] == [scheduled, first, second]
    assert (entries[1].manifest_id, entries[1].group_id, entries[1].group_name) == (None,) * 3
    assert (entries[1].group_priority, entries[1].group_max_active_jobs) == (0, None)
    with store.writing() as tx:
        assert set(work_queue.dispatch(tx, [first, second])) == {first, second}


def test_held_and_ended_entries_are_not_offered(store: Store) -> None:
    ids = declare(store, "extract", "load")
    queue(store, "extract")
    queue(store, "load")
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["extract"]], "not today")
    assert names(ready(store)) == ["load"]


def test_active_executions_are_counted_in_all_and_per_group(store: Store) -> None:
    declare(
        store,
        "one",
        "two",
        a_manifest("three", group=Group("loads")),
        a_manifest("internal", workflow="internal"),
    )
    for name in ("one", "three", "internal"):
        dispatched(store, name)
    started(store, "two")
    entry = queue_ad_hoc(store)
    with store.writing() as tx:
        work_queue.dispatch(tx, [entry])
    with store.reading() as tx:
        every_one = executions.count_active(tx, [])
        some = executions.count_active(tx, ["internal", "unknown"])
        none = executions.count_active(tx, ["internal", "work"])
    assert (every_one.total, sorted(every_one.by_group.values())) == (5, [1, 3])
    assert (some.total, some.by_group) == (4, every_one.by_group), "a group's cap binds all"
    assert (none.total, none.by_group) == (0, every_one.by_group)
