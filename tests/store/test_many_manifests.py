"""A hundred thousand manifests: declared from a generator, applied, and not written again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from headway import Headway, Item, every
from headway.applying import apply_declarations
from headway.store.declarations import Applied
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import schema
from tests.store.factories import Clock

pytestmark = pytest.mark.long

COUNT = 100_000

Versions = dict[str, set[tuple[str, ...]]]


@pytest.fixture
def store(database_url: str, clock: Clock) -> Iterator[Store]:
    store = Store(database_url, clock=clock, durable=False)
    migrate(store)
    yield store
    store.close()


def extract(number: int) -> None:
    """Never run here."""


def deployed(store: Store, count: int = COUNT, *, by_hand: bool = False) -> Applied:
    """What a new process does that declares *count* manifests and applies them."""
    hw = Headway("warehouse")
    hw.workflow(extract)
    hw.schedule_many(extract, "extract", (Item(one, one) for one in range(count)), every(hours=1))
    return apply_declarations(hw, store, by_hand=by_hand)


def changes_of_this_connection(store: Store) -> int:
    """How many rows SQLite has inserted, changed or deleted so far, on its one writer."""
    with store.writing() as tx:
        driver = tx.connection.connection.driver_connection
        assert driver is not None
        return int(driver.total_changes)


def versions(store: Store, *, locks: bool) -> Versions:
    """Every version of every row PostgreSQL has: where it lies, who wrote it, who locked it."""
    columns = "ctid::text, xmin::text" + (", xmax::text" if locks else "")
    with store.reading() as tx:
        return {
            table.name: {
                tuple(row) for row in tx.connection.execute(text(f"SELECT {columns} FROM {table}"))
            }
            for table in schema.sorted_tables
        }


def new_versions(before: Versions, after: Versions) -> dict[str, int]:
    assert all(before[name] <= after[name] for name in before), "and none is gone"
    counts = {name: len(after[name] - before[name]) for name in after}
    return {name: count for name, count in counts.items() if count}


@pytest.mark.timeout(400)
def test_a_redeployment_writes_what_is_new_and_nothing_else(store: Store, clock: Clock) -> None:
    assert deployed(store) == Applied(created=COUNT)
    clock.advance(hours=1)
    if store.on_postgresql:
        before, unlocked = versions(store, locks=False), versions(store, locks=True)
        assert len(before["headway_manifest"]) == COUNT
    else:
        changes = changes_of_this_connection(store)
        assert changes > 2 * COUNT, "manifests and their states"

    assert deployed(store) == Applied(unchanged=COUNT)
    assert deployed(store, by_hand=True) == Applied(unchanged=COUNT), "compared row by row"
    if store.on_postgresql:
        assert versions(store, locks=True) == unlocked
    else:
        assert changes_of_this_connection(store) == changes

    assert deployed(store, COUNT + 1) == Applied(created=1, unchanged=COUNT)
    written = {"headway_manifest": 1, "headway_manifest_state": 1, "headway_declaration": 1}
    if store.on_postgresql:
        assert new_versions(before, versions(store, locks=False)) == written
    else:
        assert changes_of_this_connection(store) - changes == sum(written.values())
