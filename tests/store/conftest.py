"""A migrated store on each database, under a clock that the test moves."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import schema, schema_version
from tests.pgbouncer import create_schema, direct
from tests.store.factories import Clock

EMPTY_ALL = ";".join(
    f"DELETE FROM {table.name}"
    for table in reversed(schema.sorted_tables)
    if table is not schema_version
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def migrated_postgres_url(postgres_database: str) -> str:
    """A PostgreSQL schema that was migrated once for all tests of this process."""
    name = f"contract_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    address = create_schema(postgres_database, name)
    store = Store(address)
    migrate(store)
    store.close()
    return address


@pytest.fixture
def emptied_postgres_url(migrated_postgres_url: str) -> Iterator[str]:
    """The same, without the rows of the test before: far quicker than thirty new tables."""
    yield migrated_postgres_url
    with psycopg.connect(direct(migrated_postgres_url), autocommit=True) as connection:
        # A test that leaves a transaction open fails here instead of hanging.
        connection.execute("SET lock_timeout = '10s'")
        connection.execute(EMPTY_ALL.encode())


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database without rows; the test runs once on each kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("emptied_postgres_url"))
    url = str(request.getfixturevalue("sqlite_url"))
    store = Store(url, durable=False)
    migrate(store)
    store.close()
    return url


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
