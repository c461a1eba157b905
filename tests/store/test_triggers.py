"""What is queued for a manifest because somebody asked for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.manifest import Group
from headway.domain.schedule import Never
from headway.store import removal, triggers
from headway.store.engine import Store
from headway.store.tables import manifest, work_queue
from tests.store.factories import (
    FAILED,
    NOBODY,
    Clock,
    a_manifest,
    change_manifest,
    declare,
    manifest_ids,
    queue_ad_hoc,
    ran,
    rows_of,
    started,
    wakes_of,
)


@pytest.fixture
def family(store: Store) -> dict[str, int]:
    """extract, and load, which runs after it; both in one group."""
    group = Group("etl", priority=4)
    return declare(
        store,
        a_manifest("extract", group=group, input="[1]", input_type="Table", priority=7),
        a_manifest("load", group=group, schedule=Never(), parents=("extract",)),
        groups=[group],
    )


def entry(store: Store, entry_id: int | None) -> dict[str, Any]:
    [row] = [one for one in rows_of(store, work_queue) if one["id"] == entry_id]
    return row


def remove(store: Store, *names: str) -> None:
    ids = manifest_ids(store)
    with store.writing() as tx:
        removal.remove(tx, [ids[name] for name in names])


def test_a_triggered_entry_is_made_of_the_definition(
    store: Store, clock: Clock, family: dict[str, int]
) -> None:
    now = clock.advance(minutes=1)
    with store.writing() as tx:
        at_once = triggers.trigger(tx, "extract", None)
        later = triggers.trigger(tx, "extract", timedelta(hours=1), "[2]", max_attempts=3)
    [group] = {row["group_id"] for row in rows_of(store, manifest)}
    expected = {
        "id": at_once,
        "manifest_id": family["extract"],
        "group_id": group,
        "workflow": "work",
        "input_type": "Table",
        "input": "[1]",
        "source": "trigger",
        "status": "queued",
        "priority": 7,
        "created_at": now,
        "scheduled_at": None,
        "scheduled_for": None,
        "parents_seen": None if store.on_postgresql else "{}",
        "attempts": 0,
        "max_attempts": 1,
        "dispatch_attempts": 0,
        "crashes": 0,
        "dead_letter_id": None,
        "ended_at": None,
        "ended_reason": None,
        "delayed": False,
    }
    assert entry(store, at_once) == expected
    assert entry(store, later) == expected | {
        "id": later,
        "input": "[2]",
        "max_attempts": 3,
        "scheduled_at": now + timedelta(hours=1),
        "delayed": True,
    }


def test_a_triggered_dependent_has_seen_its_parents(store: Store, family: dict[str, int]) -> None:
    ran(store, "extract")
    with store.writing() as tx:
        row_id = triggers.trigger(tx, "load", None)
    assert entry(store, row_id)["parents_seen"] is not None


def test_what_is_removed_or_unknown_is_not_triggered(store: Store, family: dict[str, int]) -> None:
    remove(store, "extract")
    with store.writing() as tx:
        assert triggers.trigger(tx, "extract", None) is None
        assert triggers.trigger(tx, "nobody", None) is None
    assert rows_of(store, work_queue) == []


def test_of_a_group_all_that_is_on_and_runs_by_itself_is_triggered(
    store: Store, family: dict[str, int]
) -> None:
    group = Group("etl")
    more = [a_manifest(name, group=group, input="[3]") for name in ("off", "gone", "never")]
    dormant = a_manifest("dormant", group=group, schedule=Never(), parents=("on",), dormant=True)
    declare(
        store,
        *more,
        dormant,
        a_manifest("on", group=group, schedule=Never(), input="[4]"),
        a_manifest("elsewhere", group=Group("other")),
    )
    change_manifest(store, "off", enabled=False)
    remove(store, "gone")
    with store.writing() as tx:
        assert triggers.trigger_group(tx, "etl") == 3
        assert triggers.trigger_group(tx, "nobody's") == 0
    ids = manifest_ids(store)
    rows = rows_of(store, work_queue)
    assert {(row["manifest_id"], row["input"]) for row in rows} == {
        (ids["extract"], "[1]"),
        (ids["never"], "[3]"),
        (ids["on"], "[4]"),
    }
    assert {(row["source"], row["max_attempts"], row["delayed"]) for row in rows} == {
        ("trigger", 1, False)
    }


def test_a_rerun_is_queued_with_what_its_execution_ran(
    store: Store, clock: Clock, family: dict[str, int]
) -> None:
    failed = ran(store, "extract", FAILED, input="[5]", priority=1)
    change_manifest(store, "extract", priority=9, input="[6]")
    now = clock.advance(minutes=1)
    with store.writing() as tx:
        same = triggers.rerun(tx, failed.id)
        other = triggers.rerun(tx, failed.id, max_attempts=2, input="[7]")
    row = entry(store, same)
    told = ("manifest_id", "workflow", "input_type", "input", "source", "priority", "created_at")
    assert [row[name] for name in told] == [
        family["extract"],
        "work",
        "Table",
        "[5]",
        "rerun",
        9,
        now,
    ]
    assert (row["max_attempts"], row["scheduled_at"], row["delayed"]) == (1, None, False)
    assert row["group_id"] is not None
    again = entry(store, other)
    assert (again["input"], again["max_attempts"]) == ("[7]", 2)


def test_what_runs_may_be_rerun_and_what_has_no_manifest_too(store: Store) -> None:
    declare(store, "extract")
    live = started(store)
    alone = queue_ad_hoc(store, priority=3)
    with store.writing() as tx:
        key = triggers.rerun(tx, live.id)
        assert triggers.rerun(tx, NOBODY) is None
        assert triggers.workflow_that_ran(tx, live.id) == "work"
        assert triggers.workflow_that_ran(tx, NOBODY) is None
    assert {row["id"] for row in rows_of(store, work_queue)} == {alone, key}


def test_what_was_removed_is_not_rerun(store: Store, family: dict[str, int]) -> None:
    one = ran(store, "extract")
    remove(store, "extract")
    with store.writing() as tx:
        assert triggers.rerun(tx, one.id) is None
    assert rows_of(store, work_queue) == []


def test_switching_a_manifest_wakes_it_and_its_children(
    store: Store, clock: Clock, family: dict[str, int]
) -> None:
    wakes_of(store)
    later = clock.advance(minutes=1)
    with store.writing() as tx:
        assert triggers.set_enabled(tx, "extract", False)
        assert not triggers.set_enabled(tx, "nobody", True)
    [row] = [one for one in rows_of(store, manifest) if one["external_id"] == "extract"]
    assert (row["enabled"], row["updated_at"]) == (False, later)
    key = family["extract"]
    assert wakes_of(store) == [(key, "children"), (key, "self")]


def test_names_of_removed_manifests_stand_for_nothing(store: Store, family: dict[str, int]) -> None:
    with store.reading() as tx:
        assert triggers.ids_of(tx, ["load", "extract", "nobody"]) == sorted(family.values())
        assert triggers.workflow_of(tx, "extract") == "work"
        assert triggers.group_exists(tx, "etl") and not triggers.group_exists(tx, "nobody's")
    remove(store, "extract")
    with store.writing() as tx:
        assert triggers.ids_of(tx, ["load", "extract"]) == [family["load"]]
        assert triggers.workflow_of(tx, "extract") is None
        assert not triggers.set_enabled(tx, "extract", True)
