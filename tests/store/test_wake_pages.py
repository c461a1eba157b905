"""A wake-up for a whole group, or for many children, is dealt with in pages and holds up nobody."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, insert, select

from headway.domain.manifest import Group
from headway.store import manifests, wakes
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import dependency, manifest_group, manifest_state, wake
from headway.store.wakes import PAGED_AT_ONCE, Scope
from tests.store.factories import Clock, a_manifest, declare, rows_of
from tests.store.test_waiting_for_nobody import somebody_changing

LIMIT = 10
MANY = [f"member-{number}" for number in range(25)]


def asleep(store: Store, *others: str) -> dict[str, int]:
    """Many manifests of the group "etl" and others of the group "other", none to be looked at."""
    strangers = [a_manifest(name, group=Group("other")) for name in others]
    ids = declare(store, *MANY, *strangers)
    with store.writing() as tx:
        wakes.set_wake_times(tx, dict.fromkeys(ids.values()))
        tx.connection.execute(delete(wake))
    return ids


def group_id(store: Store, name: str = "etl") -> int:
    with store.reading() as tx:
        chosen = select(manifest_group.c.id).where(manifest_group.c.name == name)
        return int(tx.connection.execute(chosen).scalar_one())


def with_children(store: Store, parent: str, ids: dict[str, int]) -> None:
    with store.writing() as tx:
        edges = [{"child_id": ids[name], "parent_id": ids[parent]} for name in MANY]
        tx.connection.execute(insert(dependency), edges)


def leave(store: Store, *left: tuple[int, Scope]) -> None:
    with store.writing() as tx:
        wakes.leave_wakes(tx, left)


def woken(store: Store) -> list[int]:
    """One cycle: whom the inbox woke; they are looked at and sleep on."""
    with store.writing() as tx:
        wakes.absorb_wakes(tx, LIMIT)
        found = manifests.due_candidates(tx, 1000)
        wakes.set_wake_times(tx, dict.fromkeys(found))
    return found


def test_a_group_is_woken_page_by_page_everyone_once(store: Store) -> None:
    ids = asleep(store, "stranger")
    leave(store, (group_id(store), Scope.GROUP))

    pages = [woken(store) for _ in range(4)]

    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert [key for page in pages for key in page] == sorted(ids[name] for name in MANY)
    assert rows_of(store, wake) == []


def test_the_children_of_one_parent_are_woken_page_by_page(store: Store) -> None:
    ids = asleep(store, "parent")
    with_children(store, "parent", ids)
    leave(store, (ids["parent"], Scope.CHILDREN))

    pages = [woken(store) for _ in range(4)]

    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert [key for page in pages for key in page] == sorted(ids[name] for name in MANY)
    assert rows_of(store, wake) == []


def test_whoever_has_no_children_takes_no_share_from_a_parent_of_many(store: Store) -> None:
    childless = [f"leaf-{number}" for number in range(LIMIT)]
    ids = asleep(store, "parent", *childless)
    with_children(store, "parent", ids)
    leave(store, *((ids[name], Scope.CHILDREN) for name in ["parent", *childless]))

    pages = [woken(store) for _ in range(4)]

    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert rows_of(store, wake) == []


def test_a_page_that_is_just_full_is_the_last(store: Store) -> None:
    asleep(store, *(f"stranger-{number}" for number in range(LIMIT)))
    leave(store, (group_id(store, "other"), Scope.GROUP))

    assert len(woken(store)) == LIMIT
    assert rows_of(store, wake) == []


def test_whoever_comes_after_a_large_group_does_not_wait_for_it(store: Store) -> None:
    ids = asleep(store, "parent", "child", "alone")
    with store.writing() as tx:
        edge = {"child_id": ids["child"], "parent_id": ids["parent"]}
        tx.connection.execute(insert(dependency), [edge])
    leave(store, (group_id(store), Scope.GROUP))
    leave(store, (ids["alone"], Scope.SELF), (ids["parent"], Scope.CHILDREN))

    assert {ids["alone"], ids["child"]} < set(woken(store))


def test_several_large_groups_share_a_cycle(store: Store) -> None:
    ids = asleep(store, *(f"stranger-{number}" for number in range(25)))
    leave(store, (group_id(store), Scope.GROUP), (group_id(store, "other"), Scope.GROUP))

    first = woken(store)

    members = {ids[name] for name in MANY}
    assert (len(members & set(first)), len(set(first) - members)) == (5, 5)


def test_more_groups_than_one_cycle_looks_at_have_their_turn(store: Store) -> None:
    names = [f"group-{number}" for number in range(PAGED_AT_ONCE + 2)]
    items = [a_manifest(name, group=Group(name)) for name in names]
    ids = declare(store, *items)
    with store.writing() as tx:
        wakes.set_wake_times(tx, dict.fromkeys(ids.values()))
        tx.connection.execute(delete(wake))
    leave(store, *((group_id(store, name), Scope.GROUP) for name in names))

    assert [len(woken(store)) for _ in range(3)] == [PAGED_AT_ONCE, 2, 0]
    assert rows_of(store, wake) == []


@pytest.mark.parametrize("scope", [Scope.GROUP, Scope.CHILDREN])
def test_a_member_being_changed_is_woken_later_and_delays_no_other(
    postgres_url: str, clock: Clock, scope: Scope
) -> None:
    store = Store(postgres_url, clock=clock)
    migrate(store)
    ids = asleep(store, "parent")
    with_children(store, "parent", ids)
    leave(store, (group_id(store) if scope is Scope.GROUP else ids["parent"], scope))
    locked = select(manifest_state).where(manifest_state.c.manifest_id == ids[MANY[3]])

    with somebody_changing(store, locked):
        first = [key for _ in range(4) for key in woken(store)]

    assert first == sorted(ids[name] for name in MANY if name != MANY[3])
    assert woken(store) == [ids[MANY[3]]]
    assert rows_of(store, wake) == []
    store.close()
