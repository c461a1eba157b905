"""Refusing what comes too late: a conditional write next to the user's own."""

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import DBAPIError

from headway.domain.text import shown
from headway.errors import DefinitionError, SchemaError, TooLate
from headway.store.database_errors import misses_table, worded_for_callers
from headway.store.joining import own_connection

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?", re.ASCII)


def fence(connection: Any, name: str, token: int, *, table: str = "fence") -> None:
    """Raise :class:`TooLate` if somebody with a later *token* has been here before.

    Call it first in the transaction that writes what a job has made: *connection* is a SQLAlchemy
    connection or session on your own database, *name* what is written, *token*
    ``run.fencing_token``. It needs ``CREATE TABLE fence (name TEXT PRIMARY KEY, token BIGINT NOT
    NULL)``. Whoever comes at the same moment waits for this transaction.

    >>> from sqlalchemy import create_engine, text
    >>> with create_engine("sqlite://").begin() as connection:
    ...     made = "CREATE TABLE fence (name TEXT PRIMARY KEY, token BIGINT NOT NULL)"
    ...     _ = connection.execute(text(made))
    ...     fence(connection, "users", 8)
    ...     fence(connection, "users", 7)
    Traceback (most recent call last):
    headway.errors.TooLate: 'users' was written by a later run (8); this one (7) comes too late
    """
    if not _TABLE.fullmatch(table):
        raise DefinitionError(f"table = {shown(table)}: must be a plain name; for example 'fence'")
    joined = own_connection(connection)
    with worded_for_callers(_Callers(joined.engine.url)):
        try:
            _raise_token(joined, name, token, table)
        except DBAPIError as error:
            if not misses_table(error):
                raise
            raise DefinitionError(
                f"table = {shown(table)}: the database has no such table; create it: CREATE TABLE "
                f"{table} (name TEXT PRIMARY KEY, token BIGINT NOT NULL)"
            ) from error


@dataclass(frozen=True)
class _Callers:
    """A caller's own database, which need not have headway's tables."""

    url: URL

    def schema_error(self) -> SchemaError | None:
        return None


def _raise_token(joined: Connection, name: str, token: int, table: str) -> None:
    values = {"name": name, "token": token}
    raised = (
        f"INSERT INTO {table} AS held (name, token) VALUES (:name, :token) "
        "ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE held.token <= excluded.token"
    )
    if joined.execute(text(raised), values).rowcount:
        return
    held = f"SELECT token FROM {table} WHERE name = :name"
    raise TooLate(name, token, joined.execute(text(held), values).scalar_one())
