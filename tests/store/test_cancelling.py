"""Cancelling: everything of a target that has not started ends, and what runs is asked to stop."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from sqlalchemy import update

from headway.domain.execution import ExecutionState
from headway.domain.manifest import Group, Manifest
from headway.domain.schedule import Never
from headway.domain.work_queue import EntryStatus, Source
from headway.store import cancelling, executions, outcomes
from headway.store.activation import Activation, activate, find_children
from headway.store.cancelled_entries import cancel_entries
from headway.store.cancelling import Reached, Target
from headway.store.dispatching import dispatch
from headway.store.engine import Store
from headway.store.tables import dependency, work_queue
from tests.store.factories import (
    COMPLETED,
    FAILED,
    ME,
    NOBODY,
    NOON,
    Clock,
    a_manifest,
    change_manifest,
    declare,
    dispatched,
    finish,
    queue,
    queue_ad_hoc,
    ran,
    rows_of,
    started,
    state_of,
    wakes_of,
)


def cancel(store: Store, target: Target | None, reason: str = "wrong day") -> Reached:
    assert target is not None
    with store.writing() as tx:
        return cancelling.cancel(tx, target, reason)


def of_manifest(store: Store, name: str) -> Target | None:
    with store.reading() as tx:
        return cancelling.of_manifest(tx, name)


def of_group(store: Store, name: str) -> Target | None:
    with store.reading() as tx:
        return cancelling.of_group(tx, name)


def ended(store: Store) -> dict[int, tuple[Any, ...]]:
    """How entries ended that are still in the queue."""
    return {
        row["id"]: (row["status"], row["ended_at"], row["ended_reason"])
        for row in rows_of(store, work_queue)
        if row["status"] != "queued"
    }


def grouped(name: str, group: str, **changes: Any) -> Manifest:
    return a_manifest(name, group=Group(group), **changes)


def test_a_manifest_is_cancelled_in_every_phase_and_no_other(store: Store, clock: Clock) -> None:
    declare(store, a_manifest("extract", allow_overlap=True), "other")
    kept = queue(store, "other")
    running = started(store, "extract", source=Source.TRIGGER)
    pending = dispatched(store, "extract", source=Source.TRIGGER)
    entries = [queue(store, "extract", source=Source.TRIGGER) for _ in range(2)]
    moment = clock.advance(minutes=1)

    assert cancel(store, of_manifest(store, "extract")) == Reached(cancelled=3, requested=1)

    assert ended(store) == dict.fromkeys(entries, ("cancelled", moment, "wrong day"))
    assert kept in {row["id"] for row in rows_of(store, work_queue)}
    with store.reading() as tx:
        [told] = executions.owned_by_any(tx, [ME])
        never_started = executions.find(tx, pending)
    assert (told.execution_id, told.stop) == (running.id, "wrong day")
    assert never_started is not None and never_started.failure is not None
    assert never_started.state is ExecutionState.CANCELLED
    assert never_started.failure.message == "cancelled before it started: wrong day"
    assert cancel(store, of_manifest(store, "extract"), "no") == Reached(cancelled=0, requested=1)


def test_a_group_is_cancelled_in_every_phase_and_no_other(store: Store) -> None:
    declare(store, grouped("a", "etl"), grouped("b", "etl"), grouped("c", "etl"), grouped("d", "x"))
    running, other = started(store, "a"), started(store, "d")
    dispatched(store, "b")
    queue(store, "c")
    assert cancel(store, of_group(store, "etl")) == Reached(cancelled=2, requested=1)
    with store.reading() as tx:
        stops = {one.execution_id: one.stop for one in executions.owned_by_any(tx, [ME])}
    assert stops == {running.id: "wrong day", other.id: None}


def test_what_is_not_there_is_no_target(store: Store) -> None:
    declare(store, "extract")
    change_manifest(store, "extract", removed_at=NOON)
    assert (of_manifest(store, "extract"), of_group(store, "unknown")) == (None, None)


def test_an_entry_is_cancelled_whatever_it_has_become(store: Store) -> None:
    waits, runs, other = (queue_ad_hoc(store) for _ in range(3))
    with store.writing() as tx:
        [execution_id] = dispatch(tx, [runs]).values()
    assert cancel(store, cancelling.of_entry(waits)) == Reached(cancelled=1, requested=0)
    assert cancel(store, cancelling.of_entry(runs)) == Reached(cancelled=1, requested=0)
    assert ended(store).keys() == {waits}
    with store.reading() as tx:
        found = executions.find(tx, execution_id)
        assert cancelling.how_entry_ended(tx, waits) is ExecutionState.CANCELLED
        assert cancelling.how_entry_ended(tx, runs) is ExecutionState.CANCELLED
        assert cancelling.how_entry_ended(tx, NOBODY) is None
    assert found is not None and found.state is ExecutionState.CANCELLED
    assert other not in ended(store)


def test_an_execution_is_cancelled_alone_or_as_the_entry_it_was_made_of(store: Store) -> None:
    declare(store, "one", "two")
    run, other = started(store, "one"), started(store, "two")
    target = cancelling.of_execution(run.entry_id, run.id)
    assert cancel(store, target) == Reached(cancelled=0, requested=1)
    with store.reading() as tx:
        stops = {one.execution_id: one.stop for one in executions.owned_by_any(tx, [ME])}
    assert stops == {run.id: "wrong day", other.id: None}
    with store.writing() as tx:
        outcomes.hand_back(tx, ME, [other.id])
    queued_again = cancelling.of_execution(other.entry_id, other.id)
    assert cancel(store, queued_again) == Reached(cancelled=1, requested=0)


def test_an_entry_ended_as_its_last_execution(store: Store) -> None:
    entry = queue_ad_hoc(store, max_attempts=2)
    for outcome in (FAILED, COMPLETED):
        with store.writing() as tx:
            [key] = dispatch(tx, [entry]).values()
            run = executions.claim_one(tx, ME, key)
        assert run is not None
        finish(store, run, outcome)
    with store.reading() as tx:
        assert cancelling.how_entry_ended(tx, entry) is ExecutionState.COMPLETED


def test_the_newest_of_the_cancelled_occurrences_is_dealt_with(store: Store) -> None:
    ids = declare(store, "extract")
    moments = [NOON + timedelta(hours=hours) for hours in (2, 3, 1)]
    for moment in moments:
        queue(store, "extract", source=Source.TRIGGER, scheduled_for=moment)
    queue(store, "extract", source=Source.TRIGGER)
    cancel(store, of_manifest(store, "extract"))
    assert state_of(store, "extract").settled_until == max(moments)
    assert (ids["extract"], "self") in wakes_of(store)


def test_what_a_cancelled_entry_had_seen_of_its_parents_is_dealt_with(store: Store) -> None:
    declare(store, "extract", a_manifest("load", schedule=Never(), parents=("extract",)))
    ran(store, "extract")
    [edge] = rows_of(store, dependency)
    queue(store, "load", source=Source.DEPENDENT, parents_seen=json.dumps({str(edge["id"]): 1}))
    cancel(store, of_manifest(store, "load"))
    assert [row["consumed_seq"] for row in rows_of(store, dependency)] == [1]


def test_what_is_held_for_a_child_is_cancelled_with_it(store: Store) -> None:
    ids = declare(store, "parent", a_manifest("child", schedule=Never(), parents=("parent",)))
    with store.writing() as tx:
        child = find_children(tx, ids["parent"], ["child"])["child"]
        one = Activation(child, "1", "int", 0)
        activate(tx, [one], EntryStatus.HELD)
        activate(tx, [one], EntryStatus.QUEUED)
    assert cancel(store, of_manifest(store, "child")) == Reached(cancelled=2, requested=0)


def test_what_is_held_is_queued_once_the_activation_before_it_is_cancelled(store: Store) -> None:
    ids = declare(store, "parent", a_manifest("child", schedule=Never(), parents=("parent",)))
    with store.writing() as tx:
        child = find_children(tx, ids["parent"], ["child"])["child"]
        one = Activation(child, "1", "int", 0)
        activate(tx, [one], EntryStatus.QUEUED)
        activate(tx, [one], EntryStatus.HELD)
    [queued, held] = rows_of(store, work_queue)
    assert cancel(store, cancelling.of_entry(queued["id"])) == Reached(1, 0)
    status = {row["id"]: row["status"] for row in rows_of(store, work_queue)}
    assert status == {queued["id"]: "cancelled", held["id"]: "queued"}


def test_an_entry_is_cancelled_once_whether_it_is_queued_or_held(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, "extract")
    seen: dict[str, Any] = {"scheduled_for": NOON, "parents_seen": "{}"}
    queued = queue_ad_hoc(store)
    held = queue(store, "extract", source=Source.ACTIVATION, **seen)
    with store.writing() as tx:
        this = work_queue.c.id == held
        tx.connection.execute(update(work_queue).where(this).values(status="held"))
        told = cancel_entries(tx, work_queue.c.id.in_([queued, held]), "first")
        clock.advance(minutes=1)
        assert cancel_entries(tx, work_queue.c.id.in_([queued, held]), "second") == []
    assert {tuple(row) for row in told} == {
        (queued, None, None, None),
        (held, ids["extract"], NOON, "{}"),
    }
    assert ended(store) == dict.fromkeys((queued, held), ("cancelled", NOON, "first"))
