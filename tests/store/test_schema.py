"""The migrations and tables.py say the same thing, down to the condition of every index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect, select, text

from headway.domain.work_queue import Source
from headway.store import executions, outcomes
from headway.store.engine import Store
from headway.store.tables import executions as executions_view
from headway.store.tables import schema, work_queue_entries
from tests.store.factories import (
    ME,
    NOBODY,
    NOON,
    declare,
    dispatched,
    queue,
    queue_ad_hoc,
    ran,
    started,
)


@pytest.fixture
def drawn(store: Store, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A second database of the same kind, whose tables were created from tables.py."""
    if store.on_postgresql:
        url = str(request.getfixturevalue("postgres_url"))
    else:
        url = f"sqlite:///{tmp_path / 'drawn.db'}"
    drawn = Store(url)
    with drawn.writing() as tx:
        schema.create_all(tx.connection)
    yield drawn
    drawn.close()


def shape_of(connection: Connection) -> dict[str, Any]:
    """Everything the database knows about headway's tables, in comparable words."""
    looking = inspect(connection)
    return {
        name: {
            "columns": [
                (c["name"], str(c["type"]), c["nullable"], c["default"], c.get("identity"))
                for c in looking.get_columns(name)
            ],
            "primary key": looking.get_pk_constraint(name)["constrained_columns"],
            "foreign keys": sorted(
                (
                    key["constrained_columns"],
                    key["referred_table"],
                    key["referred_columns"],
                    sorted(key["options"].items()),
                )
                for key in looking.get_foreign_keys(name)
            ),
            "unique": sorted(
                (key["name"] or "", key["column_names"])
                for key in looking.get_unique_constraints(name)
            ),
            "checks": sorted(
                (check["name"] or "", check["sqltext"])
                for check in looking.get_check_constraints(name)
            ),
        }
        for name in looking.get_table_names()
    }


def indexes_of(connection: Connection) -> dict[str, str]:
    """Every index as the database would write it: uniqueness, order and WHERE included."""
    if connection.dialect.name == "postgresql":
        found = text(
            "SELECT indexname, replace(indexdef, current_schema() || '.', '') FROM pg_indexes"
            " WHERE schemaname = current_schema()"
        )
    else:
        found = text("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    return {name: " ".join(sql.split()) for name, sql in connection.execute(found)}


def autoincrement_tables(connection: Connection) -> set[str]:
    found = text("SELECT name FROM sqlite_master WHERE upper(sql) LIKE '%AUTOINCREMENT%'")
    return set(connection.execute(found).scalars())


def test_the_migrations_create_what_the_tables_say(store: Store, drawn: Store) -> None:
    with store.reading() as migrated, drawn.reading() as wanted:
        assert shape_of(migrated.connection) == shape_of(wanted.connection)
        assert indexes_of(migrated.connection) == indexes_of(wanted.connection)
        if not store.on_postgresql:
            assert autoincrement_tables(migrated.connection) == autoincrement_tables(
                wanted.connection
            )


def test_the_comparison_sees_tables_indexes_and_conditions(store: Store) -> None:
    with store.reading() as tx:
        shape, indexes = shape_of(tx.connection), indexes_of(tx.connection)
    assert set(schema.tables) == set(shape)
    queue_shape = shape["headway_work_queue"]
    assert "headway_work_queue_priority" in dict(queue_shape["checks"])
    assert re.search(r"UNIQUE INDEX.*WHERE.*queued", indexes["headway_work_queue_one_queued"])
    assert "priority DESC" in indexes["headway_work_queue_order"]
    [to_child, to_parent] = shape["headway_dependency"]["foreign keys"]
    assert (to_child[-1], to_parent[-1]) == ([("ondelete", "CASCADE")], [("ondelete", "SET NULL")])


# Partial indexes that an ordinary entry is never written to (docs/decisions/004).
FOR_ACTIVATIONS = {"headway_work_queue_one_activation", "headway_work_queue_one_held"}
# A delayed entry is in this one instead of the order, never in both.
FOR_DELAYED = {"headway_work_queue_delayed"}


def test_an_ordinary_job_is_written_to_at_most_three_indexes_and_no_foreign_keys(
    store: Store,
) -> None:
    with store.reading() as tx:
        looking = inspect(tx.connection)
        for name in ("headway_work_queue", "headway_execution", "headway_wake"):
            indexes = {str(index["name"]) for index in looking.get_indexes(name)}
            assert len(indexes - FOR_ACTIVATIONS - FOR_DELAYED) <= 3
            assert looking.get_foreign_keys(name) == []


def test_the_views_name_the_columns_the_code_selects(store: Store) -> None:
    with store.reading() as tx:
        looking = inspect(tx.connection)
        for view in (executions_view, work_queue_entries):
            found = [column["name"] for column in looking.get_columns(view.name)]
            assert found == [column.name for column in view.columns]


def test_one_view_shows_live_and_finished_executions(store: Store) -> None:
    declare(store, "done", "running", "pending")
    done, running = ran(store, "done"), started(store, "running")
    pending = dispatched(store, "pending")
    with store.reading() as tx:
        view = select(executions_view).order_by(executions_view.c.id)
        rows = tx.connection.execute(view).all()
        found = [executions.find(tx, key) for key in (done.id, running.id, NOBODY)]
    assert [(row.id, row.state) for row in rows] == [
        (done.id, "completed"),
        (running.id, "in_progress"),
        (pending, "pending"),
    ]
    assert [row.finished_at for row in rows] == [NOON, None, None]
    assert found == [done, running, None]


def test_one_view_shows_entries_before_and_after_their_dispatch(store: Store) -> None:
    declare(store, "done", "pending", "waiting", "handed-back")
    done, pending = ran(store, "done"), dispatched(store, "pending")
    waiting, ad_hoc = queue(store, "waiting"), queue_ad_hoc(store)
    one = started(store, "handed-back", source=Source.TRIGGER)
    with store.writing() as tx:
        outcomes.hand_back(tx, ME, [one.id])
    with store.reading() as tx:
        view = select(work_queue_entries).order_by(work_queue_entries.c.id)
        rows = {row.id: row for row in tx.connection.execute(view)}
        first = executions.find(tx, pending)
    assert first is not None
    shown = {key: (row.status, row.source, row.execution_id) for key, row in rows.items()}
    assert shown == {
        done.entry_id: ("dispatched", "schedule", done.id),
        first.entry_id: ("dispatched", "schedule", pending),
        waiting: ("queued", "schedule", None),
        ad_hoc: ("queued", "ad_hoc", None),
        one.entry_id: ("queued", "trigger", None),
    }
    assert rows[done.entry_id].dispatched_at == NOON
