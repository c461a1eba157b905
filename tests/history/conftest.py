"""A migrated store on each database with its read side, under a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headway.domain.manifest import Group
from headway.domain.schedule import Never, cron, every
from headway.history import History
from headway.store.engine import Store
from tests.builders import Scene
from tests.databases import database_url, postgres_url, sqlite_url
from tests.store.factories import Clock, a_manifest, declare

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(database_url: str, clock: Clock) -> Iterator[Store]:
    """A store without rows; the test runs once on each kind."""
    store = Store(database_url, clock=clock, durable=False)
    yield store
    store.close()


@pytest.fixture
def history(store: Store) -> History:
    return History(store)


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def family(store: Store) -> Store:
    """extract → load → report, each in a group of its own, and stray, which nobody waits for."""
    first, second, third = Group("extracts", 2, 3), Group("loads"), Group("reports")
    declare(
        store,
        a_manifest("extract", group=first, schedule=cron("0 * * * *", tz="Europe/Berlin")),
        a_manifest("load", group=second, schedule=Never(), parents=("extract",)),
        a_manifest("report", group=third, schedule=Never(), parents=("load",), dormant=True),
        a_manifest("stray", group=first, schedule=every(minutes=5)),
        groups=[first, second, third],
    )
    return store
