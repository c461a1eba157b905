"""Activations: what is known of a child, what is queued or held for it, and when it is released."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest

from headway.domain.manifest import Group, Manifest, WhenBusy
from headway.domain.schedule import Never
from headway.domain.work_queue import EntryStatus, Source
from headway.store import activation, executions
from headway.store.activation import Activation, Child, Ending
from headway.store.engine import Store
from headway.store.tables import dependency, work_queue
from tests.store.factories import (
    ME,
    NOON,
    OTHER,
    Clock,
    a_manifest,
    change_manifest,
    declare,
    dispatched,
    finish,
    manifest_ids,
    queue,
    ran,
    rows_of,
    started,
)

BRONZE = Group("bronze", priority=7)


def dormant(name: str, *parents: str, **changes: Any) -> Manifest:
    terms: dict[str, Any] = {"schedule": Never(), "dormant": True, "group": BRONZE} | changes
    return a_manifest(name, parents=parents, **terms)


def children(store: Store, *names: str, parent: str = "parent") -> dict[str, Child]:
    key = manifest_ids(store)[parent]
    with store.reading() as tx:
        return activation.find_children(tx, key, names)


def an_activation(store: Store, name: str = "child", input: str = "1") -> Activation:
    child = children(store, name)[name]
    return Activation(child, input, "int", 9, max_attempts=3)


def activate(
    store: Store, *names: str, status: EntryStatus = EntryStatus.QUEUED, input: str = "1"
) -> list[int]:
    wanted = [an_activation(store, name, input) for name in names]
    with store.writing() as tx:
        return activation.activate(tx, wanted, status)


def release(store: Store, manifest_ids: Iterable[int]) -> int:
    with store.writing() as tx:
        return activation.release_held(tx, manifest_ids)


def statuses(store: Store) -> list[tuple[int, str]]:
    return [(row["manifest_id"], row["status"]) for row in rows_of(store, work_queue)]


@pytest.fixture
def ids(store: Store) -> dict[str, int]:
    """A parent with two children, and another parent's child."""
    return declare(
        store,
        a_manifest("parent"),
        a_manifest("other"),
        dormant("child", "parent"),
        dormant("second", "parent", when_busy=WhenBusy.REPLACE, allow_overlap=True),
        dormant("foreign", "other"),
    )


def test_a_child_is_known_with_how_it_stands(store: Store, ids: dict[str, int]) -> None:
    ran(store, "parent")
    found = children(store, "child", "second", "foreign", "unknown")
    assert found.keys() == {"child", "second", "foreign"}
    [edge] = [row["id"] for row in rows_of(store, dependency) if row["child_id"] == ids["child"]]
    assert found["child"] == Child(
        manifest_id=ids["child"],
        external_id="child",
        kind="dormant_dependent",
        workflow="work",
        group_id=found["second"].group_id,
        group_priority=7,
        when_busy=WhenBusy.SKIP,
        is_child=True,
        busy=False,
        parents_seen=found["child"].parents_seen,
    )
    assert json.loads(found["child"].parents_seen or "") == {str(edge): 1}
    assert (found["second"].when_busy, found["second"].is_child) == (WhenBusy.REPLACE, True)
    assert found["foreign"].is_child is False


def test_a_removed_manifest_is_no_child(store: Store, ids: dict[str, int]) -> None:
    change_manifest(store, "child", removed_at=NOON)
    assert children(store, "child") == {}


def test_a_child_is_busy_while_it_waits_or_runs(store: Store, ids: dict[str, int]) -> None:
    queue(store, "child", source=Source.ACTIVATION)
    assert {name: one.busy for name, one in children(store, "child", "second").items()} == {
        "child": True,
        "second": False,
    }
    dispatched(store, "second", source=Source.TRIGGER)
    assert children(store, "second")["second"].busy, "though it may overlap"
    dispatched(store, "foreign", source=Source.TRIGGER)
    assert children(store, "foreign")["foreign"].busy


def test_an_activation_is_an_entry_with_everything_that_was_said(
    store: Store, ids: dict[str, int], clock: Clock
) -> None:
    ran(store, "parent")
    clock.advance(minutes=1)
    child = children(store, "child")["child"]
    assert activate(store, "child") == [ids["child"]]
    [row] = rows_of(store, work_queue)
    said = {
        "manifest_id": ids["child"],
        "group_id": child.group_id,
        "workflow": "work",
        "input": "1",
        "input_type": "int",
        "source": "activation",
        "status": "queued",
        "priority": 9,
        "max_attempts": 3,
        "created_at": clock.now,
        "parents_seen": child.parents_seen,
    }
    assert child.parents_seen is not None
    assert said.items() <= row.items()


def test_of_activations_those_that_stand_already_are_left_as_they_are(
    store: Store, ids: dict[str, int]
) -> None:
    assert activate(store, "child") == [ids["child"]]
    assert activate(store, "child", "second", input="2") == [ids["second"]]
    assert activate(store) == []
    entries = {row["manifest_id"]: row["input"] for row in rows_of(store, work_queue)}
    assert entries == {ids["child"]: "1", ids["second"]: "2"}


def test_the_newest_held_activation_takes_the_place_of_the_one_before(
    store: Store, ids: dict[str, int], clock: Clock
) -> None:
    activate(store, "child", "second", status=EntryStatus.HELD)
    [first, other] = rows_of(store, work_queue)
    later = clock.advance(minutes=1)
    newer = Activation(children(store, "child")["child"], "2", "Named", 1, max_attempts=5)
    with store.writing() as tx:
        activation.replace_held(tx, newer)
    changed = {"input": "2", "input_type": "Named", "max_attempts": 5, "created_at": later}
    assert rows_of(store, work_queue) == [first | changed, other]


def test_the_first_to_be_held_is_held_as_well(store: Store, ids: dict[str, int]) -> None:
    activate(store, "child")
    with store.writing() as tx:
        activation.replace_held(tx, an_activation(store, input="2"))
    assert statuses(store) == [(ids["child"], "queued"), (ids["child"], "held")]


def test_what_is_held_waits_behind_an_activation_and_behind_nothing_else(
    store: Store, ids: dict[str, int]
) -> None:
    activate(store, "child", "second", "foreign", status=EntryStatus.HELD)
    activate(store, "child", input="2")
    queue(store, "second", source=Source.TRIGGER)
    concerned = [ids["child"], ids["second"]]
    assert release(store, concerned) == 1
    assert release(store, concerned) == 0
    held = [key for key, status in statuses(store) if status == "held"]
    assert sorted(held) == sorted([ids["child"], ids["foreign"]])


def test_the_run_of_a_parent_is_its_owners_until_it_ends(store: Store, ids: dict[str, int]) -> None:
    run = started(store, "parent")
    waits = dispatched(store, "other")
    with store.writing() as tx:
        assert activation.still_running(tx, ME, run.id) is not None
        assert activation.still_running(tx, OTHER, run.id) is None
        assert activation.still_running(tx, ME, waits) is None
    finish(store, run)
    with store.writing() as tx:
        assert activation.still_running(tx, ME, run.id) is None


def test_the_run_of_a_parent_is_not_written_to_while_it_activates(
    emptied_postgres_url: str,
) -> None:
    with closing(Store(emptied_postgres_url)) as store:
        declare(store, "parent")
        run = started(store, "parent")
        with store.writing() as tx, store.writing() as other:
            activation.still_running(tx, ME, run.id)
            assert executions.request_cancel(other, [run.id], "timeout", wait=False) == []
        with store.writing() as tx:
            assert executions.request_cancel(tx, [run.id], "timeout", wait=False) == [run.id]


def test_whether_a_commit_was_done_is_known_by_the_id_of_its_transaction(
    emptied_postgres_url: str,
) -> None:
    with closing(Store(emptied_postgres_url)) as store:
        declare(store, "parent")
        run = started(store, "parent")
        with store.writing() as tx:
            committed = activation.still_running(tx, ME, run.id)
            with store.reading() as other:
                going_on = activation.how_it_ended(other, committed or "")
        with pytest.raises(ZeroDivisionError), store.writing() as tx:
            given_up = activation.still_running(tx, ME, run.id)
            _ = 1 / 0
        assert committed and given_up
        with store.reading() as tx:
            ended = [activation.how_it_ended(tx, one) for one in (committed, given_up)]
    assert going_on is Ending.IN_PROGRESS
    assert ended == [Ending.COMMITTED, Ending.ABORTED]


def test_without_an_id_nothing_was_committed(store: Store) -> None:
    with store.reading() as tx:
        assert activation.how_it_ended(tx, "") is Ending.ABORTED
