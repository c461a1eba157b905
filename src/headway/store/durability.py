"""Whether the database takes writes, and keeps what it has acknowledged.

SQLite is opened so that it survives a loss of power. In PostgreSQL a user, a database or a whole
server may be told not to wait for the disk: then a commit that was answered may be gone after a
crash, and with it a job that was acknowledged.
"""

from sqlalchemy import text

from headway.errors import DatabaseOutage, SettingsError
from headway.store.engine import Store
from headway.store.urls import shown

REFUSED = (
    "synchronous_commit = off: must be on, or what the database has acknowledged is lost when it "
    "crashes; for example ALTER DATABASE ... SET synchronous_commit = on, or start with "
    "HEADWAY_ALLOW_LOST_COMMITS=true where that may happen"
)

STANDBY = "the server is a standby; use the address of the primary"
FORBIDDEN = (
    "default_transaction_read_only is on; switch it off, for example ALTER ROLE ... "
    "SET default_transaction_read_only = off"
)
READ_ONLY = text(
    f"SELECT CASE WHEN pg_is_in_recovery() THEN '{STANDBY}'"
    f" WHEN current_setting('default_transaction_read_only') = 'on' THEN '{FORBIDDEN}' END"
)


def check_writable(store: Store) -> None:
    """Raise :class:`DatabaseOutage` with the reason if PostgreSQL takes no writes at the moment."""
    if not store.on_postgresql:
        return
    with store.reading() as tx:
        reason = tx.connection.execute(READ_ONLY).scalar_one()
    if reason is not None:
        raise DatabaseOutage(f"{shown(store.url)} is read-only: {reason}")


def check_durability(store: Store) -> None:
    """Raise :class:`SettingsError` if a commit of this store's may be lost with the power."""
    if not store.on_postgresql:
        return
    with store.reading() as tx:
        if tx.connection.execute(text("SHOW synchronous_commit")).scalar_one() == "off":
            raise SettingsError(REFUSED)
