"""The connections to a database: how many, and how they are set up."""

from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, QueuePool

from headway.store.ended_sessions import take_for_an_outage
from headway.store.poolers import note_poolers

# A server that is gone without a word is noticed within about 15 seconds.
CONNECT_ARGUMENTS = {
    "application_name": "headway",
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


def postgresql_engine(url: URL, connections: int) -> Engine:
    """So many connections, kept open, and not one more."""
    engine = create_engine(
        url, pool_size=connections, max_overflow=0, connect_args=CONNECT_ARGUMENTS
    )
    take_for_an_outage(engine)
    note_poolers(engine)
    return engine


def listening_engine(url: URL) -> Engine:
    """Connections that wait for notifications: each is opened for that and closed afterwards."""
    engine = create_engine(url, poolclass=NullPool, connect_args=CONNECT_ARGUMENTS)
    note_poolers(engine)
    return engine


def sqlite_engine(url: URL, *, writing: bool, durable: bool) -> Engine:
    """One connection that writes, or some that only read."""
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1 if writing else 4,
        max_overflow=0,
        connect_args={"timeout": 30, "check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}")
        connection.execute("PRAGMA foreign_keys = ON")
        if not writing:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine
