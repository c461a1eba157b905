"""Behind a pooler: noticed without being told, lived with where possible, refused in words else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from headway.errors import DatabaseUnavailable, SettingsError
from headway.store import notifications
from headway.store.engine import Store
from headway.store.migrate import migrate, prepare
from headway.store.poolers import is_pooled
from headway.store.tables import schema_version
from tests.pgbouncer import create_role, pgbouncer, pooled, with_search_path
from tests.postgres_server import PostgresServer, PostgresUnavailable, private_server

NAME = "mine"
OFTEN_ENOUGH = 20  # the driver prepares what it has sent five times


@pytest.fixture(scope="module")
def server(pgbouncer_is_there: None) -> Iterator[PostgresServer]:
    """Without a pooler, with a schema that a role of its name finds by itself."""
    try:
        with private_server() as server:
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute("CREATE SCHEMA mine")
                create_role(connection, NAME)
            yield server
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


@contextmanager
def behind(server: PostgresServer, schema: str | None = None, **settings: Any) -> Iterator[Store]:
    """A store behind PgBouncer with these settings, its address perhaps with a schema."""
    address = pooled(server.url(), NAME)
    store = Store(with_search_path(address, schema) if schema else address)
    with pgbouncer(server, **settings):
        yield store
        store.close()


def prepared_statements(store: Store) -> int:
    """How many there are in the session of a transaction that has sent the same often enough."""
    with store.reading() as tx:
        for _ in range(OFTEN_ENOUGH):
            tx.connection.execute(text("SELECT :value"), {"value": 1})
        asked = text("SELECT count(*) FROM pg_prepared_statements WHERE NOT from_sql")
        return int(tx.connection.execute(asked).scalar_one())


def is_noticed(store: Store) -> bool:
    with store.reading() as tx:
        return is_pooled(tx.connection)


def test_what_is_sent_often_is_prepared_unless_there_is_a_pooler(server: PostgresServer) -> None:
    with closing(Store(server.url())) as store:
        assert prepared_statements(store) > 0
        assert not is_noticed(store)
    with behind(server) as store:
        assert prepared_statements(store) == 0
        assert is_noticed(store)


def test_nobody_listens_through_a_pooler(server: PostgresServer) -> None:
    with behind(server) as store:
        assert list(notifications.listen(store, 0.01)) == []
        notifications.notify(store, ["worker"])
    with closing(Store(server.url())) as store:
        heard = notifications.listen(store, 0.01)
        assert next(heard).line.is_free
        heard.close()


def test_the_schema_of_a_role_is_found_through_a_pooler(server: PostgresServer) -> None:
    where = text("SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = :name")
    with behind(server) as store:
        migrate(store)
        prepare(store)
        with store.reading() as tx:
            found = tx.connection.execute(where, {"name": schema_version.name}).scalar_one()
    assert found == NAME


def test_a_schema_in_the_address_that_a_pooler_refuses_is_refused_with_advice(
    server: PostgresServer,
) -> None:
    with behind(server, NAME) as store, pytest.raises(DatabaseUnavailable) as refused:
        prepare(store)
    assert "unsupported startup parameter: options" in str(refused.value)
    assert "ALTER ROLE user SET search_path" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_schema_in_the_address_that_a_pooler_swallows_is_refused_with_advice(
    server: PostgresServer,
) -> None:
    swallowed = behind(server, "another", ignored="options")
    with swallowed as store, pytest.raises(SettingsError) as refused:
        prepare(store)
    assert "ALTER ROLE user SET search_path = another" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_address_that_says_what_the_role_says_anyway_is_taken(server: PostgresServer) -> None:
    with behind(server, NAME, ignored="options") as store:
        store.check()
        assert is_noticed(store)


def test_a_pooler_that_lends_sessions_for_single_statements_is_refused_with_advice(
    server: PostgresServer,
) -> None:
    with behind(server, mode="statement") as store, pytest.raises(DatabaseUnavailable) as refused:
        store.check()
    assert str(refused.value).endswith("set pool_mode = transaction in the pooler")


def test_a_pooler_that_lends_sessions_for_good_is_treated_alike(server: PostgresServer) -> None:
    """From outside it looks the same, and nothing is lost but speed."""
    with behind(server, mode="session") as store:
        assert is_noticed(store)
