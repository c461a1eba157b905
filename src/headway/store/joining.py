"""Connections that callers bring along, to have headway write in their own transaction."""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from headway.domain.text import shown
from headway.errors import DefinitionError


def own_connection(given: Any) -> Connection:
    """The connection itself, or that of a session."""
    if isinstance(given, Connection):
        return given
    if hasattr(given, "get_bind") and not hasattr(given, "run_sync"):
        joined: Connection = given.connection()
        return joined
    raise DefinitionError(
        f"connection = {shown(given)}: must be a SQLAlchemy Connection or Session; for "
        "example of an async one: await session.run_sync(lambda own: hw.trigger('load', "
        "connection=own))"
    )


def begin_writing(connection: Connection) -> None:
    """Have a caller's SQLite transaction really begin.

    Python's driver puts that off until the first INSERT, and would commit a savepoint before it.
    """
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        if "within a transaction" not in str(error.orig):
            raise
