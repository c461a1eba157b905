"""Many manifests at once: in chunks, and by COPY where PostgreSQL and its driver are our own.

On SQLite, and in a caller's transaction, whose driver may be any, they are ordinary inserts.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import Table, insert, text
from sqlalchemy.exc import DBAPIError

from headway.errors import CreatedMeanwhile
from headway.store.tables import manifest, manifest_state
from headway.store.transaction import Transaction, insert_or_ignore

CHUNK = 10_000
# Fewer are not worth it, and cannot fail as a whole because of one.
COPY_FROM = 100
UNIQUE_VIOLATION = "23505"

Thing = TypeVar("Thing")


def chunks(things: Iterable[Thing]) -> Iterator[list[Thing]]:
    """*things* in lists of at most :data:`CHUNK`.

    >>> [len(chunk) for chunk in chunks(range(CHUNK + 1))]
    [10000, 1]
    """
    iterator = iter(things)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk


def create_manifests(tx: Transaction, rows: Sequence[dict[str, Any]]) -> int:
    """Create manifests with their states; each is looked at in the manager's next cycle.

    Returns how many: one whose external id somebody else has just taken is left out. COPY cannot
    leave anything out and raises :class:`CreatedMeanwhile` instead.
    """
    if not rows:
        return 0
    copies = tx.on_postgresql and not tx.joined and len(rows) >= COPY_FROM
    ids = _copied(tx, rows) if copies else _inserted(tx, rows)
    states = [{"manifest_id": key, "wake_at": tx.now} for key in ids]
    if copies:
        _copy(tx, manifest_state, states)
    elif states:
        tx.connection.execute(insert(manifest_state), states)
    return len(ids)


def _inserted(tx: Transaction, rows: Sequence[dict[str, Any]]) -> list[int]:
    statement = insert_or_ignore(tx, manifest).returning(manifest.c.id)
    return list(tx.connection.execute(statement, list(rows)).scalars())


def _copied(tx: Transaction, rows: Sequence[dict[str, Any]]) -> list[int]:
    """COPY returns nothing, so the ids are drawn before it."""
    drawn = text(
        "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)"
    )
    values = {"table": manifest.name, "count": len(rows)}
    ids = list(tx.connection.execute(drawn, values).scalars())
    _copy(tx, manifest, ({"id": key, **row} for row, key in zip(rows, ids, strict=True)))
    return ids


def _copy(tx: Transaction, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    waiting = iter(rows)
    first = next(waiting)
    statement, values = _copy_statement(table, list(first)), itemgetter(*first)
    driver = tx.connection.connection.driver_connection
    assert driver is not None
    refused = tx.connection.dialect.loaded_dbapi.Error
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in chain([first], waiting):
                copy.write_row(values(row))
    except refused as error:
        if getattr(error, "sqlstate", None) == UNIQUE_VIOLATION:
            raise CreatedMeanwhile from error
        # COPY goes past SQLAlchemy; whoever waits for its errors must not have to know that.
        raise DBAPIError.instance(statement, None, error, refused) from error


def _copy_statement(table: Table, columns: Sequence[str]) -> str:
    listed = ", ".join(table.c[name].name for name in columns)
    return f"COPY {table.name} ({listed}) FROM STDIN"
