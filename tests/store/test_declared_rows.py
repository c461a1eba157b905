"""What a declaration changes in rows that are there already, and what it leaves to operators."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headway.domain.manifest import Group, Manifest
from headway.domain.schedule import Never, every, once
from headway.domain.versions import version_of
from headway.errors import ChangedMeanwhile
from headway.store import declarations
from headway.store.declared_groups import change_group
from headway.store.engine import Store
from headway.store.tables import manifest, manifest_group
from tests.store.factories import (
    NOON,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    change_manifest,
    declare,
    manifest_ids,
    rows_of,
    wakes_of,
)

SOON, LATER = NOON + timedelta(hours=1), NOON + timedelta(hours=2)
RUNTIME = "warehouse:runtime"


def upsert(store: Store, *items: Manifest, application: str = RUNTIME, **options: Any) -> int:
    wanted = replace(a_declaration(*items), application=application)
    with store.writing() as tx:
        return declarations.upsert(tx, wanted, **options)


def row_of(store: Store, name: str = "extract") -> dict[str, Any]:
    [row] = [one for one in rows_of(store, manifest) if one["external_id"] == name]
    return row


def group_of(store: Store, name: str = "etl") -> dict[str, Any]:
    [row] = [one for one in rows_of(store, manifest_group) if one["name"] == name]
    return row


# Manifests


def test_a_change_is_dated_and_wakes_the_manifest_and_its_children(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, "extract", a_manifest("load", schedule=Never(), parents=("extract",)))
    wakes_of(store)
    before = row_of(store)
    later = clock.advance(minutes=1)
    apply(
        store,
        a_declaration(
            a_manifest(priority=3), a_manifest("load", schedule=Never(), parents=("extract",))
        ),
    )
    after = row_of(store)
    changed = {"priority": 3, "updated_at": later, "declared": after["declared"]}
    assert after == before | changed
    assert after["declared"] != before["declared"]
    assert wakes_of(store) == [(ids["extract"], "children"), (ids["extract"], "self")]


def test_another_schedule_counts_from_its_declaration_on(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    assert row_of(store)["scheduled_since"] == NOON
    later = clock.advance(minutes=1)
    declare(store, a_manifest(schedule=every(hours=2)))
    assert (row_of(store)["scheduled_since"], row_of(store)["interval_seconds"]) == (later, 7200)


@pytest.mark.parametrize(
    ("schedule", "enabled"), [(once(LATER), True), (every(hours=2), False), (once(SOON), False)]
)
def test_another_moment_sets_going_what_is_done_and_no_other_schedule_does(
    store: Store, schedule: Any, enabled: bool
) -> None:
    declare(store, a_manifest(schedule=once(SOON)))
    change_manifest(store, "extract", enabled=False)
    declare(store, a_manifest(schedule=schedule, priority=3))
    assert (row_of(store)["enabled"], row_of(store)["priority"]) == (enabled, 3)


def test_what_code_switches_is_switched(store: Store) -> None:
    declare(store, "extract")
    declare(store, a_manifest(enabled=False))
    assert row_of(store)["enabled"] is False
    change_manifest(store, "extract", enabled=True)
    declare(store, a_manifest(enabled=False, priority=3))
    assert row_of(store)["enabled"] is True


def test_what_code_declares_stays_the_codes_and_what_it_takes_over_becomes_so(
    store: Store,
) -> None:
    declare(store, "extract")
    assert upsert(store, a_manifest(priority=3), a_manifest("load")) == 2
    owners = {name: row_of(store, name)["owner"] for name in ("extract", "load")}
    assert owners == {"extract": "warehouse", "load": RUNTIME}
    assert row_of(store)["priority"] == 3
    declare(store, a_manifest(priority=3), a_manifest("load", priority=4))
    assert row_of(store, "load")["owner"] == "warehouse"


def test_several_are_changed_each_in_its_own_columns(store: Store) -> None:
    declare(store, "a", "b", "c")
    change_manifest(store, "b", enabled=False)
    changed = [
        a_manifest("a", schedule=every(hours=2)),
        a_manifest("b", priority=3, group=Group("other")),
        a_manifest("c", enabled=False),
    ]
    assert apply(store, a_declaration(*changed)).changed == 3
    told = {
        name: (row["interval_seconds"], row["priority"], row["enabled"])
        for name in "abc"
        for row in [row_of(store, name)]
    }
    assert told == {"a": (7200, 0, True), "b": (3600, 3, False), "c": (3600, 0, False)}
    groups = {name: row_of(store, name)["group_id"] for name in "abc"}
    etl, other = (group_of(store, name)["id"] for name in ("etl", "other"))
    assert groups == {"a": etl, "b": other, "c": etl}


def test_a_manifest_that_was_removed_is_neither_changed_nor_named(store: Store) -> None:
    declare(store, "extract", "load")
    apply(store, a_declaration(a_manifest("load")))
    [removed] = [row for row in rows_of(store, manifest) if row["removed_at"] is not None]
    declare(store, a_manifest(priority=3), "load")
    assert removed in rows_of(store, manifest)
    assert len(rows_of(store, manifest)) == 3


def test_at_run_time_only_a_batch_loses_what_it_no_longer_names(store: Store) -> None:
    declare(store, "extract")
    items = [a_manifest(name, batch="daily") for name in ("a", "b")]
    other = a_manifest("c", batch="weekly")
    assert upsert(store, *items, other) == 3
    assert upsert(store, items[0]) == 0
    assert manifest_ids(store).keys() == {"extract", "a", "b", "c"}
    assert upsert(store, replace(items[0], input="1"), prune_batch="daily") == 1
    assert manifest_ids(store).keys() == {"extract", "a", "c"}


def test_at_run_time_edges_are_made_as_well(store: Store) -> None:
    declare(store, "extract")
    upsert(store, a_manifest("load", schedule=Never(), parents=("extract",)))
    ids = manifest_ids(store)
    assert (ids["load"], "self") in wakes_of(store)


# Groups


def test_a_group_that_was_merely_named_takes_every_value_once_it_is_declared(
    store: Store, clock: Clock
) -> None:
    declare(store, a_manifest(group=Group("etl", 4, 7)))
    named = group_of(store)
    values = ("max_active_jobs", "priority", "declared", "created_at", "updated_at")
    assert [named[name] for name in values] == [4, 7, None, NOON, NOON]
    later = clock.advance(minutes=1)
    declare(store, "extract", groups=[Group("etl")])
    declared = group_of(store)
    assert declared == named | {
        "max_active_jobs": None,
        "priority": Group("etl").priority,
        "declared": declared["declared"],
        "updated_at": later,
    }
    assert declared["declared"]


def test_a_declared_group_is_as_declared_and_not_as_a_manifest_names_it(store: Store) -> None:
    declare(store, a_manifest(group=Group("etl", 4, 7)), groups=[Group("etl", 9, 2)])
    assert (group_of(store)["max_active_jobs"], group_of(store)["priority"]) == (9, 2)


def test_a_change_to_one_value_of_a_group_leaves_the_others_to_operators(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract", groups=[Group("etl", 4, 7)])
    change = {"priority": 1}
    with store.writing() as tx:
        assert change_group(tx, "etl", change)
    clock.advance(minutes=1)
    declare(store, "extract", groups=[Group("etl", 5, 7)])
    assert (group_of(store)["max_active_jobs"], group_of(store)["priority"]) == (5, 1)
    declare(store, "extract", groups=[Group("etl", 5, 7)])
    assert group_of(store)["priority"] == 1


def test_an_operators_change_to_a_group_is_dated_and_wakes_it(store: Store, clock: Clock) -> None:
    declare(store, "extract", a_manifest("load", group=Group("other")))
    wakes_of(store)
    before, other = group_of(store), group_of(store, "other")
    later = clock.advance(minutes=1)
    with store.writing() as tx:
        assert change_group(tx, "etl", {"enabled": False, "max_active_jobs": 2})
        assert not change_group(tx, "unknown", {"enabled": False})
    after = group_of(store)
    assert (after["enabled"], after["max_active_jobs"]) == (False, 2)
    assert after["updated_at"] == later
    assert after["declared"] == before["declared"]
    assert group_of(store, "other") == other
    assert wakes_of(store) == [(before["id"], "group")]


def test_a_group_that_was_changed_meanwhile_is_left_as_it_is(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    before = group_of(store)
    known = version_of(before["updated_at"])
    clock.advance(minutes=1)
    with store.writing() as tx:
        assert change_group(tx, "etl", {"priority": 1}, known)
    with pytest.raises(ChangedMeanwhile, match="group 'etl'"), store.writing() as tx:
        change_group(tx, "etl", {"priority": 2}, known)
    assert group_of(store)["priority"] == 1
