"""The names there are, as completion and the search for a near one ask for them."""

from __future__ import annotations

import pytest

from headway.domain.manifest import Group
from headway.store import naming, removal
from headway.store.engine import Store
from headway.store.naming import EXTERNAL_IDS, GROUPS
from tests.store.factories import a_manifest, declare, manifest_ids


@pytest.fixture
def named(store: Store) -> Store:
    """Manifests a, c, e and g, each in a group of its own, and d, which was removed."""
    declare(store, *(a_manifest(name, group=Group(f"of-{name}")) for name in "gecad"))
    with store.writing() as tx:
        removal.remove(tx, [manifest_ids(store)["d"]])
    return store


def test_names_that_are_not_before_a_text_come_in_order(named: Store) -> None:
    with named.reading() as tx:
        assert naming.names_from(tx, EXTERNAL_IDS, "", 10) == ["a", "c", "e", "g"]
        assert naming.names_from(tx, EXTERNAL_IDS, "c", 2) == ["c", "e"]
        assert naming.names_from(tx, EXTERNAL_IDS, "h", 2) == []
        assert naming.names_from(tx, GROUPS, "of-d", 2) == ["of-d", "of-e"]


def test_the_nearest_names_on_both_sides_are_found(named: Store) -> None:
    with named.reading() as tx:
        assert naming.names_around(tx, EXTERNAL_IDS, "d", 1) == ["c", "e"]
        assert naming.names_around(tx, EXTERNAL_IDS, "f", 2) == ["e", "c", "g"]
        assert naming.names_around(tx, EXTERNAL_IDS, "e", 1) == ["c", "e"]
