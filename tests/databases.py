"""Migrated databases without rows, for tests that begin with tables.

Thirty new tables cost more than most tests do: an SQLite file is copied, and a PostgreSQL schema
is emptied and used again, unless a test has changed more than rows in it. A folder whose tests
all begin with tables takes `database_url`, `postgres_url` and `sqlite_url` from here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Composed, Identifier, Literal

from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import schema, schema_version
from tests.builders import Clock
from tests.pgbouncer import create_schema, drop_schema

TABLES = [table.name for table in reversed(schema.sorted_tables) if table is not schema_version]

# Dead rows stay in the files: beyond this, plans would begin to differ from those of new tables.
WORN_OUT = 2_000_000

# Whatever was created, altered, granted or analysed has left its mark in one of these.
CATALOGUE = """
SELECT (SELECT array_agg(concat(oid, ' ', xmin, ' ', reltuples) ORDER BY oid)
          FROM pg_class WHERE relnamespace = {schema}::regnamespace),
       (SELECT array_agg(concat(attrelid, ' ', attnum, ' ', pg_attribute.xmin)
                         ORDER BY attrelid, attnum)
          FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
         WHERE relnamespace = {schema}::regnamespace),
       (SELECT array_agg(concat(pg_trigger.oid, ' ', pg_trigger.xmin) ORDER BY pg_trigger.oid)
          FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
         WHERE relnamespace = {schema}::regnamespace),
       (SELECT array_agg(concat(oid, ' ', xmin) ORDER BY oid)
          FROM pg_constraint WHERE connamespace = {schema}::regnamespace),
       (SELECT array_agg(concat(oid, ' ', xmin) ORDER BY oid)
          FROM pg_proc WHERE pronamespace = {schema}::regnamespace),
       (SELECT rolconfig FROM pg_roles WHERE rolname = {schema}),
       (SELECT sum(pg_relation_size(oid)) > {worn_out}
          FROM pg_class WHERE relnamespace = {schema}::regnamespace AND relkind = 'r')
"""
VERSIONS = "SELECT array_agg(concat(version, ' ', xmin)) FROM {}"
RESTART = """
SELECT setval(oid::regclass, 1, false)
  FROM pg_class WHERE relnamespace = {schema}::regnamespace AND relkind = 'S'
"""


class Schemas:
    """The migrated schemas of one process's database that no test uses at the moment."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._free: list[tuple[str, str]] = []
        self._marks: dict[str, list[object]] = {}

    @contextmanager
    def lent(self) -> Iterator[str]:
        """SQLAlchemy's URL of a migrated schema without rows, for one test."""
        name, url = self._free.pop() if self._free else self._create()
        yield url
        if self._emptied(name):
            self._free.append((name, url))
        else:
            drop_schema(self._database, name)

    def _emptied(self, name: str) -> bool:
        """Whether nothing is in it but the tables; not if the test has changed more than rows."""
        with psycopg.connect(self._database) as connection:
            # A test that leaves a transaction open fails here instead of hanging.
            connection.execute("SET lock_timeout = '10s'")
            if self._marks[name] != list(_marks(connection, name)):
                return False
            _empty(connection, name)
        return True

    def _create(self) -> tuple[str, str]:
        name = f"migrated_{os.urandom(6).hex()}"
        url = create_schema(self._database, name).replace("postgresql:", "postgresql+psycopg:")
        make_tables(url)
        with psycopg.connect(self._database) as connection:
            self._marks[name] = list(_marks(connection, name))
        return name, url


def make_tables(url: str) -> None:
    """Migrate at the moment at which scenes begin, so that any two of them look alike."""
    store = Store(url, clock=Clock(), durable=False)
    migrate(store)
    store.close()


def _marks(connection: psycopg.Connection, name: str) -> Iterator[object]:
    yield connection.execute(_about(CATALOGUE, name)).fetchone()
    table = Identifier(name, schema_version.name)
    yield connection.execute(SQL(VERSIONS).format(table)).fetchone()


def _empty(connection: psycopg.Connection, name: str) -> None:
    tables = [Identifier(name, table) for table in TABLES]
    connection.execute(SQL("LOCK TABLE {}").format(SQL(", ").join(tables)))
    deletes = [SQL("DELETE FROM {}").format(table) for table in tables]
    connection.execute(SQL("; ").join(deletes))
    connection.execute(_about(RESTART, name))


def _about(statement: str, name: str) -> Composed:
    return SQL(statement).format(schema=Literal(name), worn_out=Literal(WORN_OUT))


def migrated_copy(template: Path, folder: Path) -> str:
    """The URL of a migrated SQLite file in *folder*."""
    copy = folder / "headway.db"
    shutil.copy(template, copy)
    return f"sqlite:///{copy}"


@pytest.fixture
def postgres_url(migrated_schemas: Schemas) -> Iterator[str]:
    """SQLAlchemy's URL of a migrated PostgreSQL schema without rows."""
    with migrated_schemas.lent() as url:
        yield url


@pytest.fixture
def sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    """The URL of a migrated SQLite file without rows."""
    return migrated_copy(migrated_file, tmp_path)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database without rows; the test runs once on each kind."""
    return str(request.getfixturevalue({"sqlite": "sqlite_url"}.get(request.param, "postgres_url")))
