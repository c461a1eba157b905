"""Circles are found from what was changed alone, exactly as they are among all edges."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, event

from headway.domain.graph import Edge, check_acyclic
from headway.domain.manifest import Group, Manifest
from headway.domain.schedule import Never
from headway.errors import CircularDependencyError
from headway.store import circles, declarations
from headway.store.engine import Store
from headway.store.tables import dependency, manifest, manifest_group, manifest_state
from tests.store.factories import a_declaration, a_manifest

NAMES = [f"m{number}" for number in range(6)]
steps = st.lists(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.tuples(st.sampled_from("xyz"), st.frozensets(st.sampled_from(NAMES), max_size=2)),
        min_size=1,
        max_size=3,
    ),
    max_size=6,
)


def in_group(name: str, group: str, *parents: str) -> Manifest:
    return a_manifest(name, schedule=Never(), group=Group(group), parents=parents)


def refusal(store: Store, *items: Manifest) -> str | None:
    """What is said against *items* when they are declared at run time."""
    wanted = replace(a_declaration(*items), application="warehouse:runtime")
    try:
        with store.writing() as tx:
            declarations.upsert(tx, wanted)
    except CircularDependencyError as error:
        return str(error)
    return None


def refusal_among_all(items: dict[str, Manifest]) -> str | None:
    groups = {name: item.group.name for name, item in items.items()}
    edges = [Edge(parent, name) for name, item in items.items() for parent in item.parents]
    try:
        check_acyclic(groups, edges)
    except CircularDependencyError as error:
        return str(error)
    return None


def empty(store: Store) -> None:
    with store.writing() as tx:
        for table in (dependency, manifest_state, manifest, manifest_group):
            tx.connection.execute(delete(table))


@pytest.mark.full
@pytest.mark.parametrize("few", [0, circles.FEW])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_what_is_refused_from_the_changed_ones_is_refused_among_all(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    few: int,
    steps: list[dict[str, tuple[str, frozenset[str]]]],
) -> None:
    monkeypatch.setattr(circles, "FEW", few)
    empty(store)
    known = {name: in_group(name, name) for name in NAMES}
    assert refusal(store, *known.values()) is None
    for step in steps:
        wanted = {
            name: in_group(name, group, *sorted(parents - {name}))
            for name, (group, parents) in step.items()
        }
        expected = refusal_among_all(known | wanted)
        assert refusal(store, *wanted.values()) == expected
        if expected is None:
            known |= wanted


def test_only_what_lies_below_the_changed_is_read(store: Store) -> None:
    """A dependent more, of a kind that is there already, does not read the edges of the others."""
    parents = [in_group(f"extract-{number}", "extract") for number in range(200)]
    children = [in_group(f"load-{n}", "load", f"extract-{n}") for n in range(200)]
    assert refusal(store, *parents, *children) is None
    fetched = 0

    with store.writing() as tx:

        def count(_c: object, cursor: object, *_more: object) -> None:
            nonlocal fetched
            fetched += max(0, getattr(cursor, "rowcount", 0))

        event.listen(tx.connection, "after_cursor_execute", count)
        declarations.upsert(tx, a_declaration(in_group("load-more", "load", "extract-7")))
    assert fetched < 30
    assert refusal(store, in_group("extract-7", "extract", "load-8"))
