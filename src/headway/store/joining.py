"""Connections that callers bring along, to have headway write in their own transaction."""

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection
from sqlalchemy.exc import OperationalError

from headway.domain.text import shown
from headway.errors import DatabaseUnavailable, DefinitionError
from headway.store.urls import shown as shown_url


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


def check_same_database(own: URL, connection: Any) -> None:
    """Raise :class:`DatabaseUnavailable` unless a caller's *connection* leads to the database
    *own*, that of a sandbox."""
    other = own_connection(connection).engine.url
    if _place(own) != _place(other):
        raise DatabaseUnavailable(
            f"connection: leads to {shown_url(other)}, but inside the sandbox headway's database "
            f"is {shown_url(own)}; open the sandbox on yours: Sandbox(hw, database_url=...)"
        )


def _place(url: URL) -> tuple[object, ...]:
    """The file or the server's database, whatever the driver and its options."""
    if url.get_backend_name() == "sqlite":
        return (Path(str(url.database)).resolve(),)
    return (url.get_backend_name(), url.query.get("host", url.host), url.port, url.database)


def begin_writing(connection: Connection) -> None:
    """Have a caller's SQLite transaction really begin.

    Python's driver puts that off until the first INSERT, and would commit a savepoint before it.
    """
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        if "within a transaction" not in str(error.orig):
            raise
