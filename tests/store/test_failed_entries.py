"""Entries that end without ever becoming a run: in the queue, in the history, and counted."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert

from headway.domain.execution import FailureCode
from headway.domain.manifest import Group
from headway.domain.schedule import Never
from headway.domain.work_queue import EntryStatus, Source
from headway.store import failed_entries, work_queue
from headway.store.activation import Activation, activate, find_children
from headway.store.engine import Store
from headway.store.failed_entries import MOST_ATTEMPTS, REASON_LIMIT
from headway.store.tables import execution_history
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    NOBODY,
    NOON,
    Clock,
    a_manifest,
    declare,
    dispatched,
    queue,
    queue_ad_hoc,
    rows_of,
    view_of,
    wakes_of,
)

UNKNOWN = FailureCode.UNKNOWN_WORKFLOW


def fail(store: Store, reasons: dict[int, str]) -> list[int]:
    with store.writing() as tx:
        return failed_entries.fail(tx, reasons, UNKNOWN)


def statuses(store: Store) -> dict[int, str]:
    return {row["id"]: row["status"] for row in rows_of(store, queue_table)}


def test_a_failed_entry_stays_with_its_reason_and_is_a_failed_attempt(
    store: Store, clock: Clock
) -> None:
    group = Group("etl")
    ids = declare(store, a_manifest(input="[1]", input_type="list[int]", group=group))
    said: dict[str, Any] = {"scheduled_at": NOON, "scheduled_for": NOON, "parents_seen": "{}"}
    said |= {"priority": 7, "attempts": 2, "max_attempts": 5}
    entry = queue(store, **said)
    [before] = rows_of(store, queue_table)
    moment = clock.advance(minutes=1)

    assert fail(store, {entry: "nobody knows\x00 it"}) == [entry]

    reason = r"nobody knows\x00 it"
    ended = {"status": "failed", "ended_at": moment, "ended_reason": reason}
    assert rows_of(store, queue_table) == [before | ended]
    [record] = rows_of(store, execution_history)
    folded = ("manifest_id", "group_id", "workflow", "input_type", "input", "source", "priority")
    kept = ("scheduled_at", "scheduled_for", "max_attempts", "dispatch_attempts", "crashes")
    noted = ("dead_letter_id", "parents_seen")
    expected = {name: before[name] for name in (*folded, *kept, *noted)} | {
        "entry_id": entry,
        "queued_at": NOON,
        "external_id": "extract",
        "group_name": "etl",
        "attempt": 3,
        "state": "failed",
        "dispatched_at": moment,
        "started_at": None,
        "owner": None,
        "finished_at": moment,
        "failure_step": "DispatchJobs",
        "failure_type": str(UNKNOWN),
        "failure_message": reason,
        "task_server": "local",
    }
    assert expected.items() <= record.items()
    assert view_of(store).failed_count == 1
    assert wakes_of(store) == [(ids["extract"], "self")]


def test_each_fails_for_its_own_reason_and_under_an_id_of_its_own(store: Store) -> None:
    entries = [queue_ad_hoc(store) for _ in range(4)]
    reasons = dict(zip(entries, ["b", "a", "b", "x" * 9000], strict=True))
    assert fail(store, reasons | {NOBODY: "a"}) == entries
    records = rows_of(store, execution_history)
    told = {row["entry_id"]: row["failure_message"] for row in records}
    long = told.pop(entries[3])
    assert told == dict(zip(entries, "bab", strict=False))
    assert long.startswith("xxx") and len(long) <= REASON_LIMIT
    assert len({row["id"] for row in records}) == 4
    assert dispatched_ad_hoc(store) > max(row["id"] for row in records)


def dispatched_ad_hoc(store: Store) -> int:
    entry = queue_ad_hoc(store)
    with store.writing() as tx:
        return work_queue.dispatch(tx, [entry])[entry]


def test_what_has_ended_or_left_the_queue_does_not_fail(store: Store) -> None:
    ids = declare(store, "extract", "cancelled")
    cancelled = queue(store, "cancelled")
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["cancelled"]], "not today")
    dispatched(store, "extract")
    before = rows_of(store, queue_table)
    assert fail(store, dict.fromkeys((cancelled, 1, 2), "why")) == []
    assert rows_of(store, queue_table) == before
    assert rows_of(store, execution_history) == []


def test_an_entry_of_a_manifest_that_is_gone_fails_and_wakes_none(store: Store) -> None:
    row: dict[str, Any] = {"workflow": "work", "input_type": "None", "input": "null"}
    row |= {"manifest_id": NOBODY, "group_id": NOBODY, "source": "trigger", "created_at": NOON}
    with store.writing() as tx:
        written = insert(queue_table).values(row).returning(queue_table.c.id)
        entry = tx.connection.execute(written).scalar_one()
    assert fail(store, {entry: "its manifest is gone"}) == [entry]
    [record] = rows_of(store, execution_history)
    assert (record["manifest_id"], record["external_id"], record["group_name"]) == (
        NOBODY,
        None,
        None,
    )
    assert wakes_of(store) == []


@pytest.mark.parametrize(
    ("attempts", "attempt"), [(MOST_ATTEMPTS - 1, MOST_ATTEMPTS), (MOST_ATTEMPTS, MOST_ATTEMPTS)]
)
def test_an_attempt_counts_no_further_than_a_column_holds(
    store: Store, attempts: int, attempt: int
) -> None:
    entry = queue_ad_hoc(store, attempts=attempts)
    assert fail(store, {entry: "why"}) == [entry]
    assert [row["attempt"] for row in rows_of(store, execution_history)] == [attempt]


def test_what_is_held_behind_a_failed_entry_is_queued(store: Store) -> None:
    child = a_manifest("child", schedule=Never(), dormant=True, parents=("parent",))
    ids = declare(store, "parent", child)
    with store.writing() as tx:
        found = find_children(tx, ids["parent"], ["child"])["child"]
        activate(tx, [Activation(found, "1", "int", 0)], EntryStatus.HELD)
    [held] = statuses(store)
    failing = queue(store, "child", source=Source.TRIGGER)
    assert fail(store, {failing: "why"}) == [failing]
    assert statuses(store) == {held: "queued", failing: "failed"}
