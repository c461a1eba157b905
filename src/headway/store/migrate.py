"""Bringing the database to the version this code needs, by numbered SQL files.

Each file is one transaction under a lock, recorded in ``headway_schema_version``.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from sqlalchemy import Connection, func, insert, inspect, select

from headway.domain.progress import Progress, unseen
from headway.errors import SchemaMissing, SchemaOutdated, SchemaTooNew
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.tables import schema_version
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class Migration:
    """One numbered step of the schema, for one kind of database."""

    version: int
    name: str
    sql: str


def migrations_for(dialect: str) -> tuple[Migration, ...]:
    """Every migration shipped with this version, in order.

    >>> [migration.version for migration in migrations_for("sqlite")][:1]
    [1]
    """
    folder = files("headway.store").joinpath("migrations", dialect)
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(
        Migration(int(name[:4]), name[5:-4], folder.joinpath(name).read_text("utf-8"))
        for name in found
    )


def current_version(tx: Transaction) -> int:
    """The version the database is at; 0 if it has no headway tables."""
    if not inspect(tx.connection).has_table(schema_version.name):
        return 0
    return tx.connection.execute(select(func.max(schema_version.c.version))).scalar_one() or 0


def needed_version(store: Store) -> int:
    """The version this code works with."""
    return migrations_for(store.url.get_backend_name())[-1].version


def check_schema(store: Store) -> None:
    """Raise unless the database is exactly at the version this code works with."""
    needed = needed_version(store)
    with store.reading() as tx:
        found = current_version(tx)
    if found == 0:
        raise SchemaMissing
    if found < needed:
        raise SchemaOutdated(found, needed)
    if found > needed:
        raise SchemaTooNew(found, needed)


def migrate(store: Store, progress: Progress = unseen) -> list[Migration]:
    """Apply what is missing and return it; refuses a database newer than this code."""
    known = migrations_for(store.url.get_backend_name())
    newest = known[-1].version
    with store.reading() as tx:  # mostly nothing is missing, and then nobody is kept waiting
        found = _known_version(tx, newest)
    missing = [migration for migration in known if migration.version > found]
    applied: list[Migration] = []
    for number, migration in enumerate(missing, 1):
        if _apply_unless_applied(store, migration, newest):
            applied.append(migration)
        progress(number, len(missing))
    return applied


def prepare(store: Store) -> None:
    """Make sure the schema fits; the embedded database is migrated on the way."""
    store.check()
    if not store.on_postgresql:
        migrate(store)
    check_schema(store)


def _apply_unless_applied(store: Store, migration: Migration, newest: int) -> bool:
    """Whether it was this process that did it."""
    with store.writing() as tx:
        _wait_for_lock(tx)
        if migration.version <= _known_version(tx, newest):
            return False
        _apply(tx, migration)
    return True


def _known_version(tx: Transaction, newest: int) -> int:
    found = current_version(tx)
    if found > newest:
        raise SchemaTooNew(found, newest)
    return found


def _wait_for_lock(tx: Transaction) -> None:
    """Two servers starting together migrate one after the other; SQLite's writer lock does it."""
    if tx.on_postgresql:
        tx.connection.exec_driver_sql(
            "SELECT pg_advisory_xact_lock((CAST(%s AS bigint) << 32)"
            " + CAST(current_schema()::regnamespace::oid AS bigint))",
            (int(Lock.MIGRATE),),
        )


def _apply(tx: Transaction, migration: Migration) -> None:
    if migration.version == 1:
        schema_version.create(tx.connection)
    for statement in _statements(tx.connection, migration.sql):
        tx.connection.exec_driver_sql(statement)
    tx.connection.execute(
        insert(schema_version).values(
            version=migration.version, name=migration.name, applied_at=tx.now
        )
    )


def _statements(connection: Connection, sql: str) -> Iterator[str]:
    """PostgreSQL takes a whole script at once; SQLite one statement at a time."""
    if connection.dialect.name == "postgresql":
        yield sql.replace("%", "%%")
        return
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
