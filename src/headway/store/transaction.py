"""A transaction with the moment it began: what every verb of the store works in."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Insert,
    String,
    Table,
    any_,
    bindparam,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import JSON


@dataclass(frozen=True)
class Transaction:
    """An open transaction and its ``now``, read once from the database's clock.

    One that is ``joined`` is a caller's: its driver may be any and its settings are not ours, so
    that it is sent nothing but plain statements. In one that is ``ticking``, leases are measured by
    the database's clock at the moment each row is looked at, and not by ``now``.
    """

    connection: Connection
    now: datetime
    joined: bool = False
    ticking: bool = False

    @property
    def on_postgresql(self) -> bool:
        """Whether this is PostgreSQL; asked only where the two databases really differ."""
        return self.connection.dialect.name == "postgresql"


def word(value: StrEnum | str) -> ColumnElement[str]:
    """A state as SQL text, never a parameter.

    A parameterised state keeps partial indexes out of generic plans.
    """
    return literal_column(f"'{value}'", String())


def among(tx: Transaction, column: Column[Any], values: Iterable[int | str]) -> ColumnElement[bool]:
    """*column* is one of *values*, in one parameter, so that the statement's text never varies.

    PostgreSQL compares with an array; SQLite has none and reads a JSON list instead.
    """
    chosen = sorted(values)
    if tx.on_postgresql:
        # By the column's type, because an empty list has no values to tell it by.
        array = postgresql.ARRAY(postgresql.TEXT if _textual(column) else BigInteger)
        return column == any_(bindparam(None, chosen, type_=array))
    listed = func.json_each(bindparam(None, chosen, type_=JSON)).table_valued("value")
    return column.in_(select(listed.c.value))


def _textual(column: Column[Any]) -> bool:
    return isinstance(column.type, String)


def locked_in_order(
    table: Table, chosen: ColumnElement[bool], *, wait: bool = True
) -> ColumnElement[bool]:
    """The rows *chosen*, locked in id order before the statement touches any of them.

    Two multi-row writes that lock in different orders can deadlock. Without *wait*, rows somebody
    else is writing are left out.
    """
    locked = (
        select(table.c.id)
        .where(chosen)
        .order_by(table.c.id)
        .with_for_update(skip_locked=not wait)
        .cte("locked")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    return table.c.id.in_(select(locked.c.id))


def insert_or_ignore(tx: Transaction, table: Table) -> Insert:
    """An INSERT that leaves out rows some unique index already holds."""
    if tx.on_postgresql:
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()
