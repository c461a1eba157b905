"""Removal follows ownership: what an application declared before and no longer does, softly."""

from __future__ import annotations

from typing import Any

import pytest

from headway.domain.declaration import Declaration
from headway.domain.manifest import Manifest
from headway.domain.schedule import Never
from headway.domain.work_queue import Source
from headway.store import removal
from headway.store.declarations import Applied
from headway.store.engine import Store
from headway.store.tables import (
    dead_letter,
    dependency,
    execution_history,
    manifest,
    work_queue,
)
from tests.store.factories import (
    Clock,
    a_declaration,
    a_manifest,
    apply,
    dead_letter_for,
    declare,
    everything,
    finish,
    manifest_ids,
    queue,
    ran,
    rows_of,
    started,
    state_of,
    view_of,
    wakes_of,
)


def batch(name: str, count: int, *more: Manifest, application: str = "warehouse") -> Declaration:
    items = [a_manifest(f"{name}-{number}", batch=name) for number in range(count)]
    return a_declaration(*items, *more, application=application)


def after(external_id: str, *parents: str, **changes: Any) -> Manifest:
    return a_manifest(external_id, schedule=Never(), parents=parents, **changes)


def test_a_batch_that_shrinks_loses_the_items_beyond_its_end_and_no_others(store: Store) -> None:
    extra = a_manifest("load-extra-1")
    apply(store, batch("load", 100, extra))
    assert apply(store, batch("load", 50, extra)) == Applied(unchanged=51, removed=50)
    names = set(manifest_ids(store))
    assert names == {f"load-{number}" for number in range(50)} | {"load-extra-1"}


@pytest.mark.parametrize(
    ("before", "left", "removed"), [(4, 2, 2), (4, 1, 0), (3, 1, 0), (1, 0, 0)]
)
def test_more_than_half_is_kept_back_until_it_is_allowed(
    store: Store, before: int, left: int, removed: int
) -> None:
    apply(store, batch("load", before))
    kept_back = 0 if removed else before - left
    expected = Applied(unchanged=left, removed=removed, kept_back=kept_back)
    assert apply(store, batch("load", left)) == expected
    assert len(manifest_ids(store)) == left + kept_back
    again = apply(store, batch("load", left), allow_removal=True)
    assert again == Applied(unchanged=left, removed=kept_back)
    assert len(manifest_ids(store)) == left


def test_what_is_kept_back_goes_on_running(store: Store) -> None:
    apply(store, batch("load", 3))
    queue(store, "load-2")
    assert apply(store, batch("load", 1)).kept_back == 2
    assert [row["status"] for row in rows_of(store, work_queue)] == ["queued"]
    assert view_of(store, "load-2").has_queued_work


def test_giving_everything_a_new_name_is_removing_everything(store: Store) -> None:
    apply(store, batch("load", 4))
    assert apply(store, batch("store", 4)) == Applied(created=4, kept_back=4)


def test_other_owners_keep_what_they_have(store: Store) -> None:
    apply(store, batch("load", 4))
    apply(store, batch("load-extra", 1, application="billing"))
    apply(store, batch("load", 0, a_manifest("x")), allow_removal=True)
    assert set(manifest_ids(store)) == {"x", "load-extra-0"}


def test_queued_entries_end_as_cancelled_and_a_run_may_finish(store: Store, clock: Clock) -> None:
    apply(store, batch("load", 2))
    running = started(store, "load-1")
    queue(store, "load-1")
    queue(store, "load-1", source=Source.TRIGGER)
    later = clock.advance(minutes=1)
    apply(store, batch("load", 1))
    for entry in rows_of(store, work_queue):
        assert (entry["status"], entry["ended_at"]) == ("cancelled", later)
    [ended] = finish(store, running)
    assert ended.state == "completed"


def test_history_stays_and_the_external_id_is_free_again(store: Store, clock: Clock) -> None:
    apply(store, batch("load", 2))
    old = manifest_ids(store)["load-1"]
    ran(store, "load-1")
    apply(store, batch("load", 1))
    clock.advance(minutes=1)
    apply(store, batch("load", 2, a_manifest("other")))
    new = manifest_ids(store)["load-1"]
    assert new != old
    assert state_of(store, "load-1").success_seq == 0
    [record] = rows_of(store, execution_history)
    assert (record["manifest_id"], record["external_id"]) == (old, "load-1")
    kept = {row["id"]: row["removed_at"] for row in rows_of(store, manifest)}
    assert kept[old] is not None and kept[new] is None


# A parent that is removed, and one that comes back


@pytest.fixture
def child(store: Store) -> int:
    """The manifest ``load`` of one application after ``extract`` and ``check`` of another."""
    apply(store, a_declaration(*map(a_manifest, ("extract", "check", "x", "y"))))
    theirs = a_declaration(after("load", "extract", "check"), application="billing")
    apply(store, theirs)
    wakes_of(store)
    return manifest_ids(store)["load"]


def parents_of(store: Store) -> list[str | None]:
    names: dict[int | None, str] = {key: name for name, key in manifest_ids(store).items()}
    return [names.get(row["parent_id"]) for row in rows_of(store, dependency)]


def without(store: Store, *gone: str) -> None:
    left = [name for name in ("extract", "check", "x", "y") if name not in gone]
    apply(store, a_declaration(*map(a_manifest, left)))


def test_a_removed_parent_leaves_an_edge_to_nobody_and_wakes_its_child(
    store: Store, child: int
) -> None:
    without(store, "extract")
    assert sorted(map(str, parents_of(store))) == ["None", "check"]
    assert wakes_of(store) == [(child, "self")]
    assert [edge.parent_removed for edge in view_of(store, "load").edges.values()].count(True) == 1


def test_a_removed_child_takes_its_edges_along(store: Store, child: int) -> None:
    other = a_declaration(a_manifest("invoice"), application="billing")
    apply(store, other, allow_removal=True)
    assert rows_of(store, dependency) == []


def test_a_parent_declared_again_is_linked_again(store: Store, child: int) -> None:
    without(store, "extract", "check")
    assert parents_of(store) == [None, None]
    wakes_of(store)
    apply(store, a_declaration(*map(a_manifest, ("extract", "x", "y", "z"))))
    assert sorted(map(str, parents_of(store))) == ["None", "extract"]
    assert wakes_of(store) == [(child, "self")]
    apply(store, a_declaration(*map(a_manifest, ("extract", "check", "x", "y", "z"))))
    assert sorted(map(str, parents_of(store))) == ["check", "extract"]


def test_what_a_run_saw_of_the_old_parent_consumes_nothing_of_the_new(
    store: Store, child: int
) -> None:
    for _ in range(3):
        ran(store, "extract")
    running = started(store, "load")
    without(store, "extract")
    apply(store, a_declaration(*map(a_manifest, ("extract", "check", "x", "y", "z"))))
    ran(store, "extract")
    finish(store, running)
    edges = {edge.parent: edge for edge in view_of(store, "load").edges.values()}
    assert (edges["extract"].parent_success_seq, edges["extract"].consumed_seq) == (1, 0)


def test_linking_again_is_written_once(store: Store, child: int) -> None:
    without(store, "extract")
    wanted = a_declaration(*map(a_manifest, ("extract", "check", "x", "y", "z")))
    apply(store, wanted)
    before = everything(store)
    assert apply(store, wanted) == Applied(unchanged=5)
    assert everything(store) == before


def test_what_waits_ends_with_the_reason_given(store: Store) -> None:
    ids = declare(store, "extract", "load")
    for name in ids:
        queue(store, name)
        dead_letter_for(store, name)
    with store.writing() as tx:
        removal.remove(tx, [ids["extract"]], "no longer wanted")
        removal.remove(tx, [])
    told = {row["manifest_id"]: row["ended_reason"] for row in rows_of(store, work_queue)}
    assert told == {ids["extract"]: "no longer wanted", ids["load"]: None}
    notes = {row["manifest_id"]: row["resolution_note"] for row in rows_of(store, dead_letter)}
    assert notes == {ids["extract"]: "no longer wanted", ids["load"]: None}
