"""What becomes of a manifest whose dead letter a person has dealt with."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from headway.domain.manifest import Group
from headway.domain.schedule import Never, cron
from headway.domain.work_queue import Source
from headway.store import resolution
from headway.store.edges import parents_seen
from headway.store.engine import Store
from headway.store.resolution import Letters, Waiting
from headway.store.tables import dead_letter, dependency, manifest
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    FAILED,
    NOON,
    Clock,
    a_manifest,
    change_manifest,
    dead_letter_for,
    declare,
    manifest_ids,
    queue,
    ran,
    rows_of,
    state_of,
    wakes_of,
)

HOURLY = cron("0 * * * *")


def letter_of(store: Store, external_id: str = "extract") -> int:
    key = manifest_ids(store)[external_id]
    [row] = [one for one in rows_of(store, dead_letter) if one["manifest_id"] == key]
    return int(row["id"])


def requeue(store: Store, letters: Letters, **options: Any) -> dict[int, int]:
    with store.writing() as tx:
        return resolution.requeue(tx, letters, "again", **options)


def acknowledge(store: Store, letters: Letters) -> list[int]:
    with store.writing() as tx:
        return resolution.acknowledge(tx, letters, "known")


@pytest.fixture
def dead(store: Store, clock: Clock) -> int:
    """A manifest that failed at noon and was dead-lettered; returns its letter."""
    declare(store, a_manifest("extract", schedule=HOURLY, input="[1]", input_type="Table"))
    ran(store, outcome=FAILED, scheduled_for=NOON)
    dead_letter_for(store)
    wakes_of(store)
    clock.advance(minutes=30)
    return letter_of(store)


def test_a_requeued_entry_stands_for_the_occurrence_that_failed(
    store: Store, clock: Clock, dead: int
) -> None:
    change_manifest(store, "extract", priority=9, input="[2]")
    entries = requeue(store, [dead])
    [row] = rows_of(store, queue_table)
    [definition] = rows_of(store, manifest)
    assert entries == {dead: row["id"]}
    assert row == {
        "id": row["id"],
        "manifest_id": definition["id"],
        "group_id": definition["group_id"],
        "workflow": "work",
        "input_type": "Table",
        "input": "[1]",
        "source": "requeue",
        "status": "queued",
        "priority": 9,
        "created_at": clock.now,
        "scheduled_at": None,
        "scheduled_for": NOON,
        "parents_seen": None if store.on_postgresql else "{}",
        "attempts": 0,
        "max_attempts": 1,
        "dispatch_attempts": 0,
        "crashes": 0,
        "dead_letter_id": dead,
        "ended_at": None,
        "ended_reason": None,
        "delayed": False,
    }
    [letter] = rows_of(store, dead_letter)
    told = (letter["status"], letter["resolved_at"], letter["resolution_note"])
    assert told == ("retried", clock.now, "again")


def test_another_input_is_queued_with_it(store: Store, dead: int) -> None:
    requeue(store, [dead], input="[3]")
    assert [row["input"] for row in rows_of(store, queue_table)] == ["[3]"]


def test_what_failed_on_request_is_requeued_without_an_occurrence(store: Store) -> None:
    declare(store, "extract")
    ran(store, outcome=FAILED, source=Source.TRIGGER, scheduled_for=NOON)
    dead_letter_for(store)
    requeue(store, [letter_of(store)])
    [row] = rows_of(store, queue_table)
    assert (row["source"], row["scheduled_for"]) == ("requeue", None)


def test_a_resolved_letter_lets_failures_be_counted_anew_and_wakes_the_manager(
    store: Store, dead: int
) -> None:
    newest = ran(store, outcome=FAILED, source=Source.TRIGGER)
    key = manifest_ids(store)["extract"]
    wakes_of(store)
    requeue(store, [dead])
    assert state_of(store).failures_after == newest.id
    assert wakes_of(store) == [(key, "self")]


def test_acknowledging_settles_the_occurrence_and_what_came_due_since(
    store: Store, clock: Clock, dead: int
) -> None:
    key = manifest_ids(store)["extract"]
    clock.advance(hours=2)
    assert acknowledge(store, [dead]) == [dead]
    assert state_of(store).settled_until == NOON + timedelta(hours=2)
    assert state_of(store).failures_after > 0
    assert wakes_of(store) == [(key, "self")]
    assert rows_of(store, queue_table) == []
    [letter] = rows_of(store, dead_letter)
    assert (letter["status"], letter["resolution_note"]) == ("acknowledged", "known")
    assert acknowledge(store, [dead]) == []
    assert requeue(store, [dead]) == {}


@pytest.mark.parametrize(
    ("resolve", "reason"),
    [
        (requeue, "its dead letter was requeued"),
        (acknowledge, "its dead letter was acknowledged"),
    ],
)
def test_what_waits_for_another_attempt_ends_with_the_letter(
    store: Store, resolve: Any, reason: str
) -> None:
    declare(store, "extract")
    one = ran(store, outcome=FAILED, source=Source.TRIGGER, max_attempts=2)
    other = queue(store, source=Source.TRIGGER)
    dead_letter_for(store)
    assert [row["id"] for row in rows_of(store, queue_table)] == [one.entry_id, other]
    resolve(store, [letter_of(store)])
    rows = {row["id"]: row for row in rows_of(store, queue_table)}
    ended = rows[one.entry_id]
    assert (ended["status"], ended["ended_reason"]) == ("cancelled", reason)
    assert rows[other]["status"] == "queued"


def test_letters_are_chosen_by_group_and_workflow(store: Store) -> None:
    declare(
        store,
        a_manifest("a", group=Group("one"), workflow="x"),
        a_manifest("b", group=Group("one"), workflow="y"),
        a_manifest("c", group=Group("two"), workflow="x"),
    )
    for name in ("a", "b", "c"):
        dead_letter_for(store, name)
    letters = {name: letter_of(store, name) for name in ("a", "b", "c")}
    assert acknowledge(store, Waiting(group="two", workflow="y")) == []
    assert acknowledge(store, Waiting(group="one", workflow="x")) == [letters["a"]]
    assert list(requeue(store, Waiting(workflow="x"))) == [letters["c"]]
    assert list(requeue(store, Waiting())) == [letters["b"]]


@pytest.mark.parametrize("resolve", [requeue, acknowledge])
def test_an_acknowledged_dependent_consumes_what_it_saw_and_a_requeued_one_sees_it_again(
    store: Store, resolve: Any
) -> None:
    declare(store, "extract", a_manifest("load", schedule=Never(), parents=("extract",)))
    ran(store, "extract")
    with store.reading() as tx:
        seen = tx.connection.execute(
            select(parents_seen(tx, manifest.c.id)).where(manifest.c.external_id == "load")
        ).scalar_one()
    ran(store, "load", FAILED, source=Source.DEPENDENT, parents_seen=seen)
    dead_letter_for(store, "load")
    letter = letter_of(store, "load")
    if resolve is requeue:
        requeue(store, [letter])
        [row] = rows_of(store, queue_table)
        assert json.loads(row["parents_seen"]) == json.loads(seen) != {}
    else:
        acknowledge(store, [letter])
    [edge] = rows_of(store, dependency)
    assert edge["consumed_seq"] == (0 if resolve is requeue else 1)


def test_who_asks_is_told_what_a_waiting_letter_is_about(store: Store, dead: int) -> None:
    with store.reading() as tx:
        assert resolution.workflow_of(tx, dead) == ("extract", "work")
        assert resolution.workflow_of(tx, dead + 1) is None
        assert resolution.removed_manifest_of(tx, dead) is None
    acknowledge(store, [dead])
    with store.reading() as tx:
        assert resolution.workflow_of(tx, dead) is None


@pytest.mark.parametrize("resolve", [requeue, acknowledge])
def test_what_was_held_behind_the_attempt_is_queued(store: Store, resolve: Any) -> None:
    declare(store, "load")
    ran(store, "load", FAILED, source=Source.ACTIVATION, max_attempts=2)
    held = queue(store, "load", source=Source.TRIGGER)
    with store.writing() as tx:
        chosen = queue_table.c.id == held
        tx.connection.execute(queue_table.update().where(chosen).values(status="held"))
    dead_letter_for(store, "load")
    resolve(store, [letter_of(store, "load")])
    [row] = [one for one in rows_of(store, queue_table) if one["id"] == held]
    assert row["status"] == "queued"
