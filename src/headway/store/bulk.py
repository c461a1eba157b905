"""Creating many manifests at once: COPY on PostgreSQL, ordinary inserts on SQLite."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Table, insert, text
from sqlalchemy.exc import DBAPIError

from headway.store.tables import manifest, manifest_state
from headway.store.transaction import Transaction


def create_manifests(tx: Transaction, rows: Sequence[dict[str, Any]]) -> None:
    """Create manifests with their states; each is looked at in the manager's next cycle."""
    if not rows:
        return
    ids = _copied(tx, rows) if tx.on_postgresql else _inserted(tx, rows)
    states = [{"manifest_id": key, "wake_at": tx.now} for key in ids]
    if tx.on_postgresql:
        _copy(tx, manifest_state, states)
    else:
        tx.connection.execute(insert(manifest_state), states)


def _inserted(tx: Transaction, rows: Sequence[dict[str, Any]]) -> list[int]:
    statement = insert(manifest).returning(manifest.c.id)
    return list(tx.connection.execute(statement, list(rows)).scalars())


def _copied(tx: Transaction, rows: Sequence[dict[str, Any]]) -> list[int]:
    """COPY returns nothing, so the ids are drawn before it."""
    drawn = text(
        "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)"
    )
    values = {"table": manifest.name, "count": len(rows)}
    ids = list(tx.connection.execute(drawn, values).scalars())
    _copy(tx, manifest, [row | {"id": key} for row, key in zip(rows, ids, strict=True)])
    return ids


def _copy(tx: Transaction, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)
    columns = list(rows[0])
    statement = _copy_statement(table, columns)
    driver = tx.connection.connection.driver_connection
    assert driver is not None
    refused = tx.connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row([row[name] for name in columns])
    except refused as error:
        # COPY goes past SQLAlchemy; whoever waits for its errors must not have to know that.
        raise DBAPIError.instance(statement, None, error, refused) from error


def _copy_statement(table: Table, columns: Sequence[str]) -> str:
    listed = ", ".join(table.c[name].name for name in columns)
    return f"COPY {table.name} ({listed}) FROM STDIN"
