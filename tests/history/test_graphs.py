"""What the graphs of groups and manifests show, and how far they reach."""

from __future__ import annotations

from typing import Any

import pytest

from headway.domain.manifest import Group
from headway.domain.schedule import Never
from headway.history import (
    Graph,
    History,
)
from headway.store import (
    removal,
)
from headway.store.engine import Store
from headway.store.reading import graph
from tests.store.factories import (
    a_manifest,
    declare,
    manifest_ids,
)


def test_an_edge_of_the_graph_of_groups_says_for_how_many_it_stands(
    store: Store, history: History
) -> None:
    after: dict[str, Any] = {"schedule": Never(), "group": Group("loads"), "parents": ("extract",)}
    declare(
        store,
        a_manifest("extract", group=Group("extracts")),
        a_manifest("load", **after),
        a_manifest("copy", **after),
    )
    for around in (None, "extracts", "loads"):
        found = history.groups.graph(around=around)
        assert [(one.parent, one.child, one.weight) for one in found.edges] == [
            ("extracts", "loads", 2)
        ]
        assert (found.around, found.truncated) == (around, False)
    [holds] = [one.holds for one in history.groups.graph().nodes if one.name == "loads"]
    assert holds is not None
    assert (holds.name, holds.manifests) == ("loads", 2)


def test_a_neighbourhood_reaches_six_edges_far(store: Store, history: History) -> None:
    chain = [a_manifest("m0")] + [
        a_manifest(f"m{number}", schedule=Never(), parents=(f"m{number - 1}",))
        for number in range(1, 9)
    ]
    declare(store, *chain)
    found = history.manifests.graph(around="m0")
    assert [one.name for one in found.nodes] == [f"m{number}" for number in range(7)]
    assert (len(found.edges), found.truncated, found.around) == (6, True, "m0")
    found = history.manifests.graph(around="m4")
    assert (len(found.nodes), found.truncated) == (9, False)
    near = history.manifests.graph(around="m4", limit=3)
    assert [one.name for one in near.nodes] == ["m3", "m4", "m5"]
    assert near.truncated
    assert history.manifests.graph(around="nobody") == Graph(
        (), (), truncated=False, around="nobody"
    )


def test_a_graph_of_manifests_without_a_centre_has_the_first_of_all(
    family: Store, history: History
) -> None:
    whole = history.manifests.graph()
    assert [one.name for one in whole.nodes] == ["extract", "load", "report", "stray"]
    assert [(one.parent, one.child) for one in whole.edges] == [
        ("extract", "load"),
        ("load", "report"),
    ]
    assert (whole.truncated, whole.around) == (False, None)
    some = history.manifests.graph(limit=2)
    assert ([one.name for one in some.nodes], len(some.edges)) == (["extract", "load"], 1)
    assert some.truncated
    with family.writing() as tx:
        removal.remove(tx, [manifest_ids(family)["extract"]])
    left = history.manifests.graph()
    assert [one.name for one in left.nodes] == ["load", "report", "stray"]
    assert [(one.parent, one.child) for one in left.edges] == [("load", "report")]
    near = history.manifests.graph(around="load")
    assert [one.name for one in near.nodes] == ["load", "report"]


def test_edges_come_by_the_names_they_join(store: Store, history: History) -> None:
    after: dict[str, Any] = {"schedule": Never()}
    declare(
        store,
        *("z", "a"),
        a_manifest("y", **after, parents=("z", "a")),
        a_manifest("b", **after, parents=("z", "a")),
    )
    wanted = [("a", "b"), ("a", "y"), ("z", "b"), ("z", "y")]
    for around in (None, "y"):
        found = history.manifests.graph(around=around)
        assert [(one.parent, one.child) for one in found.edges] == wanted


def test_a_graph_of_too_many_edges_says_that_there_are_more(
    family: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "EXAMINED", 1)
    assert history.manifests.graph().truncated
    assert history.manifests.graph(around="report").truncated
    assert history.groups.graph().truncated
    assert not history.manifests.graph(around="stray").truncated
