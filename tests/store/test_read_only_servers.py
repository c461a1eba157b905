"""A PostgreSQL that takes no writes: a standby, or a user whose transactions are read-only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import text

from headway.errors import DatabaseOutage
from headway.store.engine import TRANSIENT, Store
from headway.store.migrate import migrate, prepare
from headway.store.schema_versions import migrations_for
from tests.pgbouncer import with_setting
from tests.postgres_server import PostgresServer, become_standby, promote
from tests.store.factories import everything

READ_ONLY = text("SHOW transaction_read_only")


def writes(store: Store) -> None:
    with store.writing() as tx:
        tx.connection.execute(text("DELETE FROM headway_wake"))


@pytest.fixture
def store(emptied_postgres_url: str) -> Iterator[Store]:
    url = with_setting(emptied_postgres_url, "default_transaction_read_only", "on")
    with closing(Store(url)) as store:
        yield store


def test_a_read_only_setting_holds_for_writers_also_after_readers(store: Store) -> None:
    for _ in range(2):
        with store.reading() as tx:
            assert tx.connection.execute(READ_ONLY).scalar_one() == "on"
        with store.writing() as tx:
            assert tx.connection.execute(READ_ONLY).scalar_one() == "on"
        with store.notifying() as connection:
            assert connection.execute(READ_ONLY).scalar_one() == "on"
        with pytest.raises(DatabaseOutage, match="is read-only: cannot execute DELETE in a read"):
            writes(store)


def test_a_start_is_refused_before_anything_is_tried(store: Store) -> None:
    with pytest.raises(DatabaseOutage, match="read-only: default_transaction_read_only is on"):
        prepare(store)


def test_a_standby_is_an_outage_until_it_is_promoted(own_server: PostgresServer) -> None:
    with closing(Store(own_server.url())) as store:
        migrate(store)
        store.close()
        own_server.stop()
        become_standby(own_server)
        before = everything(store)
        with pytest.raises(
            DatabaseOutage, match="is read-only: the server is a standby; use the address of"
        ):
            prepare(store)
        with pytest.raises(TRANSIENT):
            writes(store)
        assert everything(store) == before
        promote(own_server)
        writes(store)
        prepare(store)


def test_an_empty_standby_cannot_be_migrated(own_server: PostgresServer) -> None:
    own_server.stop()
    become_standby(own_server)
    with closing(Store(own_server.url())) as store:
        with pytest.raises(DatabaseOutage, match="is read-only: cannot execute CREATE TABLE"):
            migrate(store)
        promote(own_server)
        assert len(migrate(store)) == len(migrations_for("postgresql"))
