"""What the next cycle of the manager looks at is foreseen without writing anything."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headway.domain.manifest import Group
from headway.domain.schedule import Never
from headway.store.engine import Store
from headway.store.foreseeing import next_candidates
from headway.store.tables import manifest_group
from headway.store.wakes import Scope, leave_wakes
from tests.store.factories import (
    NOON,
    a_manifest,
    change_state,
    declare,
    everything,
    rows_of,
    wakes_of,
)

ONE, TWO = Group("one"), Group("two")


@pytest.fixture
def ids(store: Store) -> dict[str, int]:
    """A parent and a sibling in one group, two children in another; none is due."""
    children = [
        a_manifest(name, schedule=Never(), parents=("parent",), group=TWO) for name in ("a", "b")
    ]
    ids = declare(
        store, a_manifest("parent", group=ONE), a_manifest("sibling", group=ONE), *children
    )
    wakes_of(store)
    for name in ids:
        change_state(store, name, wake_at=NOON + timedelta(hours=1))
    return ids


def foreseen(store: Store, ids: dict[str, int], limit: int = 10) -> set[str]:
    before = everything(store)
    with store.reading() as tx:
        found = next_candidates(tx, limit)
    assert everything(store) == before
    return {name for name, key in ids.items() if key in found}


def leave(store: Store, key: int, scope: Scope) -> None:
    with store.writing() as tx:
        leave_wakes(tx, [(key, scope)])


def test_what_is_due_is_looked_at(store: Store, ids: dict[str, int]) -> None:
    assert foreseen(store, ids) == set()
    change_state(store, "a", wake_at=NOON)
    assert foreseen(store, ids) == {"a"}


def test_a_wake_is_for_a_manifest_its_children_or_its_group(
    store: Store, ids: dict[str, int]
) -> None:
    groups = {row["name"]: row["id"] for row in rows_of(store, manifest_group)}
    leave(store, ids["sibling"], Scope.SELF)
    assert foreseen(store, ids) == {"sibling"}
    wakes_of(store)
    leave(store, ids["parent"], Scope.CHILDREN)
    assert foreseen(store, ids) == {"a", "b"}
    wakes_of(store)
    leave(store, groups["one"], Scope.GROUP)
    assert foreseen(store, ids) == {"parent", "sibling"}


def test_of_each_kind_of_wake_no_more_come_than_a_cycle_takes_on(
    store: Store, ids: dict[str, int]
) -> None:
    for name in ("sibling", "parent"):
        leave(store, ids[name], Scope.SELF)
    leave(store, ids["parent"], Scope.CHILDREN)
    assert foreseen(store, ids, limit=1) == {"parent", "a"}
