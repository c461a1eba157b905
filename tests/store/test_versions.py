"""A row is changed only if it is still as it was when somebody looked at it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from headway.domain.versions import version_of
from headway.errors import ChangedMeanwhile
from headway.store.engine import Store
from headway.store.tables import manifest_group
from headway.store.versions import One, change
from tests.store.factories import NOON, Clock, declare, rows_of


@pytest.fixture
def group(store: Store) -> One:
    declare(store, "extract")
    return One(manifest_group, manifest_group.c.name == "etl", "group 'etl'")


def changed(store: Store, one: One, priority: int, expected: str | None = None) -> int | None:
    with store.writing() as tx:
        return change(tx, one, {"priority": priority}, expected)


def row_of(store: Store) -> dict[str, Any]:
    [row] = rows_of(store, manifest_group)
    return row


def version(store: Store) -> str:
    moment: datetime = row_of(store)["updated_at"]
    return version_of(moment)


def test_a_change_gives_other_values_and_a_later_version(
    store: Store, clock: Clock, group: One
) -> None:
    later = clock.advance(minutes=1)
    before = row_of(store)
    assert changed(store, group, 5) == before["id"]
    assert row_of(store) == before | {"priority": 5, "updated_at": later}


def test_of_two_changes_in_one_moment_the_second_has_the_later_version(
    store: Store, group: One
) -> None:
    seen = version(store)
    changed(store, group, 5, seen)
    assert version(store) != seen and row_of(store)["updated_at"] > NOON
    with pytest.raises(ChangedMeanwhile) as refused:
        changed(store, group, 6, seen)
    assert "group 'etl'" in str(refused.value)
    for other in ("", "zzz"):
        with pytest.raises(ChangedMeanwhile):
            changed(store, group, 6, other)
    assert row_of(store)["priority"] == 5
    changed(store, group, 7, version(store))
    assert row_of(store)["priority"] == 7


def test_what_is_not_there_is_not_changed(store: Store, group: One) -> None:
    nobody = One(manifest_group, manifest_group.c.name == "nobody's", 'group "nobody\'s"')
    assert changed(store, nobody, 5) is None
    assert changed(store, nobody, 5, "whatever") is None
