"""Bringing a database to the version this code needs, once, wholly, and never backwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError

from headway.errors import SchemaForeign, SchemaMissing, SchemaOutdated, SchemaTooNew
from headway.store import migrate as migrate_module
from headway.store.engine import Store
from headway.store.migrate import (
    Migration,
    check_schema,
    current_version,
    migrate,
    migrations_for,
    needed_version,
)
from headway.store.tables import schema, schema_version
from tests.store.factories import NOON, Clock, declare, everything, rows_of

NEWEST = migrations_for("sqlite")[-1].version


@pytest.fixture
def empty(database_url: str, clock: Clock) -> Iterator[Store]:
    store = Store(database_url, clock=clock)
    yield store
    store.close()


def version_of(store: Store) -> int:
    with store.reading() as tx:
        return current_version(tx)


def tables_of(store: Store) -> set[str]:
    with store.reading() as tx:
        return set(inspect(tx.connection).get_table_names())


def test_both_databases_have_the_same_migrations_without_a_gap() -> None:
    sqlite, postgresql = migrations_for("sqlite"), migrations_for("postgresql")
    assert [one.version for one in sqlite] == list(range(1, NEWEST + 1))
    assert [(one.version, one.name) for one in sqlite] == [
        (one.version, one.name) for one in postgresql
    ]


def test_an_empty_database_gets_every_table(empty: Store) -> None:
    applied = migrate(empty)
    assert [one.version for one in applied] == list(range(1, NEWEST + 1))
    assert tables_of(empty) >= set(schema.tables)
    recorded = [(row["version"], row["name"]) for row in rows_of(empty, schema_version)]
    assert recorded == [(one.version, one.name) for one in applied]
    assert {row["applied_at"] for row in rows_of(empty, schema_version)} == {NOON}
    assert version_of(empty) == needed_version(empty) == NEWEST
    check_schema(empty)


def test_migrating_again_does_nothing(empty: Store, clock: Clock) -> None:
    migrate(empty)
    declare(empty, "extract")
    before = everything(empty)
    clock.advance(hours=1)
    assert migrate(empty) == []
    assert everything(empty) == before


def test_an_older_database_gets_only_what_is_missing(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        known = migrations_for(empty.url.get_backend_name())
        older.setattr(migrate_module, "migrations_for", lambda dialect: known[:1])
        assert [one.version for one in migrate(empty)] == [1]
        check_schema(empty)
    with pytest.raises(SchemaOutdated, match=f"version 1, this headway needs {NEWEST}"):
        check_schema(empty)
    assert [one.version for one in migrate(empty)] == list(range(2, NEWEST + 1))
    check_schema(empty)


def test_a_database_without_tables_is_said_to_have_none(empty: Store) -> None:
    assert version_of(empty) == 0
    with pytest.raises(SchemaMissing, match="headway db migrate"):
        check_schema(empty)


@pytest.mark.story(50)
def test_a_database_newer_than_the_code_is_left_alone(empty: Store) -> None:
    migrate(empty)
    with empty.writing() as tx:
        newer = {"version": NEWEST + 1, "name": "future", "applied_at": tx.now}
        tx.connection.execute(schema_version.insert().values(**newer))
    before = everything(empty)
    for attempt in (check_schema, migrate):
        with pytest.raises(SchemaTooNew, match=rf"version {NEWEST + 1}.*knows \({NEWEST}\)"):
            attempt(empty)
    assert everything(empty) == before


@pytest.mark.parametrize("version", [1, NEWEST])
def test_a_database_of_another_line_of_development_is_left_alone(
    empty: Store, version: int
) -> None:
    migrate(empty)
    with empty.writing() as tx:
        renamed = schema_version.update().where(schema_version.c.version == version)
        tx.connection.execute(renamed.values(name="of_others"))
    before = everything(empty)
    for attempt in (check_schema, migrate):
        with pytest.raises(SchemaForeign, match=f"migration {version} .* 'of_others'.* use the"):
            attempt(empty)
    assert everything(empty) == before


def test_a_migration_that_fails_leaves_nothing_behind(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Migration(1, "good", "CREATE TABLE kept (id INTEGER);")
    bad = Migration(
        2,
        "bad",
        "CREATE TABLE half_done (id INTEGER);\nINSERT INTO half_done VALUES (1);\n"
        "ALTER TABLE kept ADD COLUMN more TEXT;\nINSERT INTO nowhere VALUES (1);\n",
    )
    monkeypatch.setattr(migrate_module, "migrations_for", lambda dialect: (good, bad))
    with pytest.raises(DBAPIError, match="nowhere"):
        migrate(empty)
    assert tables_of(empty) == {"kept", schema_version.name}
    assert version_of(empty) == 1
    with empty.reading() as tx:
        columns = inspect(tx.connection).get_columns("kept")
    assert [column["name"] for column in columns] == ["id"]
    with pytest.raises(SchemaOutdated):
        check_schema(empty)


def test_percent_signs_and_question_marks_in_a_migration_are_only_text(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "CREATE TABLE kept (note TEXT DEFAULT '100 %s; :name? -- no comment' NOT NULL);\n"
    only = (Migration(1, "odd", sql + "INSERT INTO kept DEFAULT VALUES;\n"),)
    monkeypatch.setattr(migrate_module, "migrations_for", lambda dialect: only)
    migrate(empty)
    with empty.reading() as tx:
        kept = tx.connection.exec_driver_sql("SELECT note FROM kept").scalar_one()
    assert kept == "100 %s; :name? -- no comment"


PROGRAM = """
import sys
from headway.store.engine import Store
from headway.store.migrate import migrate
print("ready", flush=True)
sys.stdin.readline()
store = Store(sys.argv[1])
print(len(migrate(store)), flush=True)
store.close()
"""


def test_processes_that_migrate_at_once_do_it_once(empty: Store, database_url: str) -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, database_url]
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert sum(int(out) for out, _ in said) == NEWEST
    check_schema(empty)
