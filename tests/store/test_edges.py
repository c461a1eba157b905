"""Dependency edges: parents named by external id, successes consumed and never given back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select, update

from headway.domain.dependencies import EdgeState
from headway.domain.manifest import Group, Manifest
from headway.domain.schedule import Never
from headway.errors import CircularDependencyError, ParentNotFound
from headway.store import edges, work_queue
from headway.store.engine import Store
from headway.store.tables import dependency, execution, manifest
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    CANCELLED,
    COMPLETED,
    FAILED,
    NOON,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    change_manifest,
    declare,
    dispatched,
    everything,
    finish,
    manifest_ids,
    queue,
    ran,
    rows_of,
    started,
    view_of,
    wakes_of,
)


def after(external_id: str, *parents: str, **changes: Any) -> Manifest:
    return a_manifest(external_id, schedule=Never(), parents=parents, **changes)


def edges_of(store: Store, child: str = "load") -> dict[str | None, int]:
    """The parents of a child and what it has consumed of each; None are removed ones."""
    parent = manifest.alias()
    with store.reading() as tx:
        statement = (
            select(parent.c.external_id, dependency.c.consumed_seq)
            .select_from(dependency.outerjoin(parent, parent.c.id == dependency.c.parent_id))
            .where(dependency.c.child_id == manifest_ids(store)[child])
        )
        return {name: seq for name, seq in tx.connection.execute(statement)}


def seen_by(store: Store, table: Any) -> list[int]:
    """What the entries or live executions of children noted, one number each."""
    noted = [json.loads(row["parents_seen"] or "{}") for row in rows_of(store, table)]
    return [seq for one in noted for seq in one.values()]


# set_parents


def test_a_declaration_makes_edges_to_parents_declared_before_or_after(store: Store) -> None:
    ids = declare(store, after("load", "extract", "check"), "extract", "check")
    assert edges_of(store) == {"extract": 0, "check": 0}
    assert set(view_of(store, "load").edges) == {row["id"] for row in rows_of(store, dependency)}
    assert wakes_of(store) == [(ids["load"], "self")]


def test_parents_that_stay_keep_what_was_consumed(store: Store) -> None:
    declare(store, "extract", "check", after("load", "extract", "check"))
    ran(store, "extract")
    ran(store, "load")
    kept = {row["parent_id"]: row for row in rows_of(store, dependency)}
    ids = declare(store, "extract", "check", "other", after("load", "extract", "other"))
    assert edges_of(store) == {"extract": 1, "other": 0}
    assert kept[ids["extract"]] in rows_of(store, dependency)


def test_a_dependent_that_gets_a_schedule_has_no_edges_left(store: Store) -> None:
    declare(store, "extract", after("load", "extract"))
    declare(store, "extract", "load")
    assert rows_of(store, dependency) == []
    assert view_of(store, "load").kind == "interval"


def test_set_parents_tells_which_children_changed(store: Store) -> None:
    ids = declare(store, "a", "b", after("x", "a"), after("y", "a"))
    wanted = {ids["x"]: frozenset({ids["a"]}), ids["y"]: frozenset({ids["b"]})}
    with store.writing() as tx:
        assert edges.set_parents(tx, wanted) == {ids["y"]}
        assert edges.set_parents(tx, wanted) == set()
        assert edges.children_of(tx, [ids["a"], ids["b"]]) == sorted([ids["x"], ids["y"]])


@pytest.mark.parametrize(
    ("successes", "consumed"),
    [
        (["extract", "load"], 1),
        (["extract", "extract", "load"], 2),
        (["load", "extract"], 0),
        (["load", "extract", "extract"], 1),
        (["extract", "extract"], 0),
        (["load"], 0),
        ([], 0),
    ],
)
def test_a_new_edge_starts_with_what_came_before_the_childs_last_success_consumed(
    store: Store, clock: Clock, successes: list[str], consumed: int
) -> None:
    declare(store, "extract", "load")
    for one in successes:
        clock.advance(minutes=1)
        ran(store, one)
    declare(store, "extract", after("load", "extract"))
    assert edges_of(store) == {"extract": consumed}


# What is consumed


def test_the_parents_success_is_noted_when_queued_and_again_when_dispatched(store: Store) -> None:
    declare(store, "extract", after("load", "extract"))
    [edge] = rows_of(store, dependency)
    ran(store, "extract")
    entry = queue(store, "load", parents_seen=json.dumps({str(edge["id"]): 1}))
    assert seen_by(store, queue_table) == [1]
    ran(store, "extract")
    with store.writing() as tx:
        work_queue.dispatch(tx, [entry])
    assert seen_by(store, execution) == [2]


@pytest.mark.parametrize(
    ("outcome", "consumed"), [(COMPLETED, 1), (CANCELLED, 1), (FAILED, 0)], ids=str
)
def test_a_success_and_a_cancelled_run_consume_what_they_saw_and_a_failure_does_not(
    store: Store, outcome: Any, consumed: int
) -> None:
    declare(store, "extract", after("load", "extract"))
    ran(store, "extract")
    child = started(store, "load")
    ran(store, "extract")
    finish(store, child, outcome)
    assert edges_of(store) == {"extract": consumed}


def test_an_edge_never_goes_back(store: Store) -> None:
    declare(store, "extract", after("load", "extract"))
    [edge] = rows_of(store, dependency)
    with store.writing() as tx:
        edges.consume(tx, [json.dumps({edge["id"]: 3}), None, json.dumps({edge["id"]: 2})])
        edges.consume(tx, [json.dumps({edge["id"]: 1}), "{}"])
    assert edges_of(store) == {"extract": 3}


def test_a_child_is_shown_every_edge_with_how_its_parent_stands(store: Store) -> None:
    names = ("off", "on", "removed")
    declare(store, *names, after("load", *names, allow_overlap=True))
    ran(store, "on")
    ran(store, "removed")
    ran(store, "load")
    for _ in range(2):
        ran(store, "on")
    change_manifest(store, "off", enabled=False)
    ids, key_of = manifest_ids(store), {row["parent_id"]: row["id"] for row in edge_rows(store)}
    change_manifest(store, "removed", removed_at=NOON)
    assert view_of(store, "load").edges == {
        key_of[ids["off"]]: EdgeState("off", 0, 0, parent_enabled=False),
        key_of[ids["on"]]: EdgeState("on", 3, 1, parent_enabled=True),
        key_of[ids["removed"]]: EdgeState(None, 1, 1, parent_enabled=True),
    }
    started(store, "load")
    assert view_of(store, "load").edges[key_of[ids["on"]]] == EdgeState("on", 3, 3)


def edge_rows(store: Store) -> list[dict[str, Any]]:
    return rows_of(store, dependency)


def test_of_a_parent_that_is_gone_nothing_new_is_seen(store: Store) -> None:
    declare(store, "extract", "check", after("load", "extract", "check"))
    for _ in range(2):
        ran(store, "extract")
    ran(store, "load")
    gone = manifest_ids(store)["extract"]
    [edge] = [row["id"] for row in edge_rows(store) if row["parent_id"] == gone]
    with store.writing() as tx:
        lost = update(dependency).where(dependency.c.id == edge)
        tx.connection.execute(lost.values(parent_id=None))
    dispatched(store, "load")
    [noted] = [json.loads(row["parents_seen"]) for row in rows_of(store, execution)]
    assert (noted[str(edge)], len(noted)) == (2, 2)


@pytest.mark.parametrize("text", ["nonsense", "[1]", '{"x": 1}', '{"1": null}', "3"])
def test_a_note_that_cannot_be_read_consumes_nothing(store: Store, text: str) -> None:
    declare(store, "extract", after("load", "extract"))
    with store.writing() as tx:
        edges.consume(tx, [text])
    assert edges_of(store) == {"extract": 0}


def test_of_several_lost_parents_each_is_replaced_by_one_that_is_missing(store: Store) -> None:
    ids = declare(store, "a", "b", "c", after("load", "a", "b"))
    with store.writing() as tx:
        lost = update(dependency).where(dependency.c.parent_id == ids["b"])
        tx.connection.execute(lost.values(parent_id=None))
        wanted = {ids["load"]: {ids["a"], ids["c"]}}
        assert edges.fill_lost_parents(tx, wanted) == {ids["load"]}
        assert edges.fill_lost_parents(tx, wanted) == set()
    assert edges_of(store) == {"a": 0, "c": 0}


def test_what_has_no_parents_notes_nothing(store: Store) -> None:
    declare(store, "extract")
    dispatched(store, "extract")
    assert seen_by(store, execution) == []


# What is refused


def test_an_unknown_parent_is_named_and_nothing_is_left(store: Store) -> None:
    declare(store, "extract", groups=[Group("etl", 4)])
    before = everything(store)
    wanted = a_declaration(a_manifest("new"), after("load", "nowhere"), groups=[Group("etl", 9)])
    with pytest.raises(ParentNotFound, match="load: depends on 'nowhere', but no manifest has"):
        apply(store, wanted)
    assert everything(store) == before


def test_a_removed_parent_is_as_unknown_as_one_that_never_was(store: Store) -> None:
    declare(store, "extract", "other")
    apply(store, a_declaration(a_manifest("other")))
    with pytest.raises(ParentNotFound, match="'extract'"):
        declare(store, "other", after("load", "extract"))


def test_a_parent_of_another_application_is_found(store: Store) -> None:
    declare(store, "extract")
    apply(store, a_declaration(after("load", "extract"), application="billing"))
    assert edges_of(store) == {"extract": 0}


def test_a_circle_through_another_applications_rows_is_refused_with_nothing_written(
    store: Store,
) -> None:
    def grouped(external_id: str, group: str, *parents: str) -> Manifest:
        return after(external_id, *parents, group=Group(group))

    declare(store, a_manifest("a", group=Group("group-a")), a_manifest("z", group=Group("z")))
    theirs = a_declaration(
        grouped("b", "group-b", "a"), grouped("c", "group-c", "b"), application="billing"
    )
    apply(store, theirs)
    before = everything(store)
    mine = a_declaration(grouped("a", "group-a", "c"), a_manifest("z", group=Group("z")))
    with pytest.raises(CircularDependencyError) as refused:
        apply(store, mine)
    assert str(refused.value) == (
        "Circular dependency detected among manifest groups: [group-a, group-b, group-c]. "
        "Manifest groups must form a directed acyclic graph (DAG)."
    )
    assert everything(store) == before


def test_a_manifest_moved_to_another_group_may_close_a_circle_of_groups(store: Store) -> None:
    one, two = Group("one"), Group("two")
    first = [a_manifest("a", group=one), after("b", "a", group=two), a_manifest("c", group=two)]
    declare(store, *first, after("d", "c", group=two))
    before = everything(store)
    with pytest.raises(CircularDependencyError, match=r"\[one, two\]"):
        declare(store, *first, after("d", "c", group=one))
    assert everything(store) == before
