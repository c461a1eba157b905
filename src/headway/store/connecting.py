"""The connections to a database: how many, and how they are set up."""

import sqlite3
import time
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.dialects.postgresql.base import PGReadOnlyConnectionCharacteristic
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.pool import NullPool, QueuePool
from sqlalchemy.util import LRUCache

from headway.store.database_file import DatabaseFile
from headway.store.ended_sessions import take_for_an_outage
from headway.store.odd_moments import read_odd_moments
from headway.store.poolers import note_poolers
from headway.store.taking_turns import PATIENCE, take_turns

# A server that is gone without a word is noticed within about 15 seconds.
CONNECT_ARGUMENTS = {
    "application_name": "headway",
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


class Compiled(LRUCache[Any, Any]):
    """The statements of one kind of database, compiled once in a process.

    SQLAlchemy does it once for each engine, and a process has several on the same database: two
    on SQLite, one more for what must not wait. Its keys begin with the engine's dialect.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__(key[1:], compiled)


class ReadOnlyForOnce(PGReadOnlyConnectionCharacteristic):
    """``postgresql_readonly``, after which a connection is as the server wants it to be again.

    SQLAlchemy would leave it at False, by which the driver begins each later transaction READ
    WRITE: a standby refuses that, and ``default_transaction_read_only`` would be overruled.
    """

    def reset_characteristic(self, dialect: Dialect, dbapi_conn: DBAPIConnection) -> None:
        """Leave it to the server whether the next transaction may write."""
        dialect.set_readonly(dbapi_conn, None)  # type: ignore[attr-defined]


ON_POSTGRESQL = {"compiled_cache": Compiled(1000)}
ON_SQLITE = {"compiled_cache": Compiled(1000)}


def postgresql_engine(url: URL, connections: int) -> Engine:
    """So many connections, kept open, and not one more."""
    engine = create_engine(
        url,
        pool_size=connections,
        max_overflow=0,
        hide_parameters=True,  # inputs may hold secrets, and an error would quote them
        connect_args=CONNECT_ARGUMENTS,
        execution_options=ON_POSTGRESQL,
    )
    dialect: Any = engine.dialect
    dialect.connection_characteristics = dialect.connection_characteristics.union(
        {"postgresql_readonly": ReadOnlyForOnce()}
    )
    take_for_an_outage(engine)
    note_poolers(engine)
    read_odd_moments(engine)
    return engine


def listening_engine(url: URL) -> Engine:
    """Connections that wait for notifications: each is opened for that and closed afterwards."""
    engine = create_engine(url, poolclass=NullPool, connect_args=CONNECT_ARGUMENTS)
    note_poolers(engine)
    return engine


def sqlite_engine(url: URL, file: DatabaseFile, *, writing: bool, durable: bool) -> Engine:
    """The engine for one writing connection or several reading ones, while *file* is in place."""
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1 if writing else 4,
        max_overflow=0,
        hide_parameters=True,
        connect_args={"timeout": PATIENCE, "check_same_thread": False, "isolation_level": None},
        execution_options=ON_SQLITE,
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        _write_ahead(connection)
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        connection.execute("PRAGMA foreign_keys = ON")
        if not writing:
            connection.execute("PRAGMA query_only = ON")
        file.opened()

    event.listen(engine, "do_connect", partial(_connect, file))
    event.listen(engine, "close", lambda connection, record: file.closed())
    if writing:
        take_turns(engine, url.database or "", file.check)
    else:
        event.listen(engine, "begin", partial(_begin_reading, file))
    return engine


def _connect(file: DatabaseFile, dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
    return file.connect(lambda: dialect.connect(*arguments, **named))


def _begin_reading(file: DatabaseFile, connection: Connection) -> None:
    file.check_briefly()
    connection.exec_driver_sql("BEGIN")


def _write_ahead(connection: Any) -> None:
    """Have the file written ahead, waiting for others that open it at the same moment.

    SQLite itself does not wait here, whatever its timeout: of two that open a new file at once,
    each may hold what the other one needs.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
