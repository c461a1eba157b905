"""Bringing the database to the version this code needs, by numbered SQL files.

Each file is one transaction under a lock, recorded in ``headway_schema_version``.
"""

import sqlite3
from collections.abc import Iterator

from sqlalchemy import Connection, insert

from headway.domain.progress import Progress, unseen
from headway.errors import SchemaTooNew
from headway.store.durability import check_writable
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.schema_versions import Migration as Migration
from headway.store.schema_versions import check_names, misfit, version_of
from headway.store.schema_versions import migrations_for as migrations_for
from headway.store.tables import schema_version
from headway.store.transaction import Transaction


def current_version(tx: Transaction) -> int:
    """The version the database is at; 0 if it has no headway tables."""
    return version_of(tx.connection)


def needed_version(store: Store) -> int:
    """The version this code works with."""
    return migrations_for(store.url.get_backend_name())[-1].version


def check_schema(store: Store) -> None:
    """Raise unless the database is exactly at the version this code works with."""
    known = migrations_for(store.url.get_backend_name())
    with store.reading() as tx:
        found = current_version(tx)
        check_names(tx.connection, known)
    if error := misfit(found, known):
        raise error


def migrate(store: Store, progress: Progress = unseen) -> list[Migration]:
    """Apply what is missing and return it; refuses a database newer than this code."""
    known = migrations_for(store.url.get_backend_name())
    newest = known[-1].version
    with store.reading() as tx:  # mostly nothing is missing, and then nobody is kept waiting
        found = _known_version(tx, newest)
        check_names(tx.connection, known)
    missing = [migration for migration in known if migration.version > found]
    applied: list[Migration] = []
    for number, migration in enumerate(missing, 1):
        if _apply_unless_applied(store, migration, newest):
            applied.append(migration)
        progress(number, len(missing))
    return applied


def prepare(store: Store, *, to_write: bool = True) -> None:
    """Make sure the schema fits, and PostgreSQL takes writes if they are needed; the embedded
    database is migrated on the way."""
    store.check()
    if not store.on_postgresql:
        migrate(store)
    check_schema(store)
    if to_write:
        check_writable(store)


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
