"""A transaction with the moment it began: what every verb of the store works in."""

from collections.abc import Iterable, Mapping, Sequence
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
    Select,
    String,
    Table,
    Text,
    any_,
    bindparam,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import JSON

from headway.store.straight import NOTHING, ask
from headway.store.together import Line
from headway.store.types import Instant, Listed

CLOCK: ColumnElement[datetime] = literal_column("clock_timestamp()", Instant)

# One channel per schema: two headways in one database do not wake each other.
# Where the search path names no schema that exists, the next statement says what is missing.
CHANNEL = "'headway_' || coalesce(current_schema()::regnamespace::oid::text, '')"


@dataclass(frozen=True)
class Transaction:
    """An open transaction and its ``now``, read once from the database's clock.

    One that is ``joined`` is a caller's: its driver may be any and its settings are not ours, so
    that it is sent nothing but plain statements. In one that is ``ticking``, leases are measured by
    the database's clock at the moment each row is looked at, and not by ``now``. One with a
    ``hint`` is no more than a statement that queues something, reads the clock itself and tells
    listening servers of that topic; by a ``line``, if there is one, which commits on its own.
    """

    connection: Connection
    now: datetime
    joined: bool = False
    ticking: bool = False
    hint: str | None = None
    line: Line | None = None

    @property
    def on_postgresql(self) -> bool:
        """Whether this is PostgreSQL; asked only where the two databases really differ."""
        return self.connection.dialect.name == "postgresql"

    def ask(self, statement: Any, given: Mapping[str, Any] = NOTHING) -> Sequence[Any]:
        """All rows of a *statement* that is drafted once and carried out often."""
        if self.line is not None:
            return self.line.ask((statement, given))[0]
        return ask(self.connection, statement, given, straight=not self.joined)


@dataclass(frozen=True)
class Draft:
    """Stands for the transaction while a statement is drafted, once, to be carried out often.

    Its moment is a parameter by the name of ``now``, or what the database's clock says ``at_once``.
    What is asked thousands of times a minute takes longer to be put together than to be answered.
    """

    on_postgresql: bool
    at_once: bool = False

    @property
    def now(self) -> Any:
        """When the statement will be carried out."""
        return CLOCK if self.at_once else bindparam("now", type_=Instant)

    def told(self) -> tuple[ColumnElement[Any], ...]:
        """What a statement returns besides, if it has to tell listening servers itself: of the
        topic that comes as the parameter ``hint``."""
        if not self.at_once:
            return ()
        return (func.pg_notify(literal_column(CHANNEL), bindparam("hint", type_=Text)),)


@dataclass(frozen=True)
class DraftTogether(Draft):
    """The same for a statement that is sent together with others, and so cannot be told what the
    first of them has read: its moment is that of their transaction."""

    @property
    def now(self) -> Any:
        """When the first of the statements came."""
        return func.transaction_timestamp(type_=Instant)


Asking = Transaction | Draft


def draft_for(tx: Transaction) -> Draft:
    """Who stands for *tx* in a statement that will be carried out there."""
    return Draft(tx.on_postgresql)


def drafted_to_queue(tx: Transaction) -> tuple[Draft, dict[str, Any]]:
    """The same for a statement that queues something, and what that is given of the moment."""
    if tx.hint is None:
        return draft_for(tx), {"now": tx.now}
    return Draft(tx.on_postgresql, at_once=True), {"hint": tx.hint}


def word(value: StrEnum | str) -> ColumnElement[str]:
    """A state as SQL text, never a parameter.

    A parameterised state keeps partial indexes out of generic plans.
    """
    return literal_column(f"'{value}'", String())


def among(tx: Asking, column: Column[Any], values: Iterable[int | str]) -> ColumnElement[bool]:
    """*column* is one of *values*, in one parameter, so that the statement's text never varies.

    PostgreSQL compares with an array; SQLite has none and reads a JSON list instead.
    """
    chosen = sorted(values)
    if tx.on_postgresql:
        return column == any_(bindparam(None, chosen, type_=_listed(column)))
    listed = func.json_each(bindparam(None, chosen, type_=JSON)).table_valued("value")
    return column.in_(select(listed.c.value))


def among_given(draft: Draft, column: Column[Any], name: str) -> ColumnElement[bool]:
    """*column* is one of the values that will come as the parameter *name*."""
    if draft.on_postgresql:
        return column == any_(bindparam(name, type_=_listed(column)))
    listed = func.json_each(bindparam(name, type_=JSON)).table_valued("value")
    return column.in_(select(listed.c.value))


def told_of(draft: Draft, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """The same of rows at hand, not of rows to be looked up: one look into a table of the values.

    PostgreSQL compares a row with one after the other of an array it does not know beforehand.
    """
    if not draft.on_postgresql:
        listed = func.json_each(bindparam(name, type_=JSON)).table_valued("value")
        return column.in_(select(listed.c.value))
    return column.in_(select(func.unnest(bindparam(name, type_=_listed(column)))))


def among_found(tx: Asking, column: Column[Any], found: Select[Any]) -> ColumnElement[bool]:
    """*column* is one of what the select has *found*, whatever the planner believes of the table.

    On PostgreSQL as an array: a join with so few rows is begun at the other end by a planner that
    believes the table empty, as it last was when somebody counted, and then reads all of it once
    for every row found.
    """
    if tx.on_postgresql:
        return column == any_(func.array(found.scalar_subquery()))
    return column.in_(found)


def _listed(column: ColumnElement[Any]) -> Listed:
    return Listed(Text() if isinstance(column.type, String) else BigInteger())


def locked_in_order(
    tx: Asking, table: Table, chosen: ColumnElement[bool], *, wait: bool = True
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
    return among_found(tx, table.c.id, select(locked.c.id))


def insert_or_ignore(tx: Asking, table: Table) -> Insert:
    """An INSERT that leaves out rows some unique index already holds."""
    if tx.on_postgresql:
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()
