"""Asking the doctor about a scene, and breaking its database by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Table, insert, text, update

from headway import every
from headway.doctor.examination import Doctor, Report
from headway.store.transaction import Transaction
from tests.builders import Scene

# The servers of the tests may lose data when the machine does, and one is everybody's superuser.
OF_THE_TESTS = {"unsafe-settings", "superuser"}


def examine(scene: Scene, *, fix: bool = False, **options: Any) -> Report:
    """What the doctor says at once; nothing is in motion unless a test moves it."""
    quick: dict[str, Any] = {"wait": lambda seconds: None} | options
    return Doctor(scene.store, scene.app.settings, **quick).examine(fix=fix)


def found(scene: Scene, **options: Any) -> dict[str, tuple[str, ...]]:
    """The rows of every finding, by check."""
    report = examine(scene, **options)
    return {one.check: one.rows for one in report.findings if one.check not in OF_THE_TESTS}


def declare(scene: Scene, *external_ids: str, **options: Any) -> None:
    for external_id in external_ids:
        scene.app.schedule("work", external_id, None, every(hours=1), **options)
    scene.apply()


def change(scene: Scene, table: Table, **values: Any) -> None:
    """Write these values into every row."""
    with scene.store.writing() as tx:
        tx.connection.execute(update(table).values(values))


def add(scene: Scene, table: Table, **values: Any) -> None:
    with scene.store.writing() as tx:
        tx.connection.execute(insert(table).values(values))


def tell(scene: Scene, statement: str) -> None:
    """Send a statement as a person would."""
    with scene.store.writing() as tx:
        tx.connection.execute(text(statement))


@contextmanager
def without_references(scene: Scene) -> Iterator[Transaction]:
    """A transaction in which no foreign key is looked after."""
    if scene.store.on_postgresql:
        with scene.store.writing() as tx:
            tx.connection.execute(text("SET LOCAL session_replication_role = replica"))
            yield tx
        return
    # SQLite listens only outside transactions, and the connection is the only one that writes.
    with scene.store._writer.connect() as connection:
        raw: Any = connection.connection.driver_connection
        connection.rollback()
        raw.execute("PRAGMA foreign_keys = OFF")
    with scene.store.writing() as tx:
        yield tx
    with scene.store._writer.connect() as connection:
        raw = connection.connection.driver_connection
        connection.rollback()
        raw.execute("PRAGMA foreign_keys = ON")
