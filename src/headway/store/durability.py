"""Whether the database keeps what it has acknowledged, also when its machine loses power.

SQLite is opened so that it does. In PostgreSQL a user, a database or a whole server may be told
not to wait for the disk: then a commit that was answered may be gone after a crash, and with it a
job that somebody was told is accepted.
"""

from sqlalchemy import text

from headway.errors import SettingsError
from headway.store.engine import Store

REFUSED = (
    "synchronous_commit = off: must be on, or what the database has acknowledged is lost when it "
    "crashes; for example ALTER DATABASE ... SET synchronous_commit = on, or start with "
    "HEADWAY_ALLOW_LOST_COMMITS=true where that may happen"
)


def check_durability(store: Store) -> None:
    """Raise :class:`SettingsError` if a commit of this store's may be lost with the power."""
    if not store.on_postgresql:
        return
    with store.reading() as tx:
        if tx.connection.execute(text("SHOW synchronous_commit")).scalar_one() == "off":
            raise SettingsError(REFUSED)
