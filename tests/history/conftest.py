"""A migrated store on each database with its read side, under a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headway.history import History
from headway.store.engine import Store
from tests.builders import Scene
from tests.databases import database_url, postgres_url, sqlite_url
from tests.store.factories import Clock

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
