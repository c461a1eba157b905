"""Many rows as parameters of one statement whose text never varies."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    CursorResult,
    Insert,
    Table,
    TableValuedAlias,
    bindparam,
    column,
    func,
    select,
)

from headway.store.transaction import Transaction
from headway.store.types import Listed


def unnested(columns: Sequence[Column[Any]], rows: Sequence[Sequence[Any]]) -> TableValuedAlias:
    """*rows* as a table for PostgreSQL, one array for each of *columns*.

    A thousand rows as thirteen thousand parameters take the driver longer to read than the server
    to write.
    """
    arrays = [
        bindparam(None, values, type_=Listed(one.type))
        for one, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    named = [column(one.name, one.type) for one in columns]
    return func.unnest(*arrays).table_valued(*named, name="given").render_derived()


def unnest_of(columns: Sequence[Column[Any]]) -> TableValuedAlias:
    """The same for a statement that is drafted: the arrays come as ``given_`` and their name."""
    arrays = [bindparam(f"given_{one.name}", type_=Listed(one.type)) for one in columns]
    named = [column(one.name, one.type) for one in columns]
    return func.unnest(*arrays).table_valued(*named, name="given").render_derived()


def insert_rows(
    tx: Transaction, statement: Insert, table: Table, rows: Sequence[Mapping[str, Any]]
) -> CursorResult[Any]:
    """Carry out *statement*, an INSERT into *table*, for all *rows*; each names the same columns.

    SQLite takes one row after the other, for it has no arrays, and nobody to send them to.
    """
    if not tx.on_postgresql:
        return tx.connection.execute(statement, list(rows))
    columns = [table.c[name] for name in rows[0]]
    given = select(unnested(columns, [tuple(row.values()) for row in rows]))
    return tx.connection.execute(statement.from_select(columns, given))
