"""A migrated store on each database, under a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.store.engine import Store
from tests.databases import Schemas, migrated_copy
from tests.store.factories import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def emptied_postgres_url(migrated_schemas: Schemas) -> Iterator[str]:
    """SQLAlchemy's URL of a migrated PostgreSQL schema without rows."""
    with migrated_schemas.lent() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a migrated database without rows; the test runs once on each kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("emptied_postgres_url"))
    return migrated_copy(request.getfixturevalue("migrated_file"), tmp_path)


@pytest.fixture
def store(store_url: str, clock: Clock) -> Iterator[Store]:
    store = Store(store_url, clock=clock, durable=False)
    yield store
    store.close()


@pytest.fixture
def second(store: Store, store_url: str, clock: Clock) -> Iterator[Store]:
    """Another server's store on the same database."""
    second = Store(store_url, clock=clock, durable=False)
    yield second
    second.close()
