"""Wake-ups between servers by NOTIFY, as a hint only: whoever misses one polls anyway.

Never sent inside a job's transaction, because NOTIFY makes commits wait for one another.
"""

from collections.abc import Iterable, Iterator

from sqlalchemy import text

from headway.store.engine import Store
from headway.store.poolers import is_pooled
from headway.store.transaction import Transaction

# One channel per schema: two headways in one database do not wake each other.
CHANNEL = "'headway_' || current_schema()::regnamespace::oid"


def notify(store: Store, topics: Iterable[str]) -> None:
    """Tell every listening server that there is something to do for these *topics*."""
    with store.notifying() as connection:
        for topic in topics:
            connection.execute(text(f"SELECT pg_notify({CHANNEL}, :topic)"), {"topic": topic})


def notify_at_commit(tx: Transaction) -> None:
    """Tell every listening server, once the caller's transaction commits, to look around.

    Without a payload, so that any number of calls in one transaction are one notification.
    """
    if tx.on_postgresql:
        tx.connection.execute(text(f"SELECT pg_notify({CHANNEL}, '')"))


def listen(store: Store, seconds: float) -> Iterator[str | None]:
    """Yield each topic as it arrives, and None at least every *seconds*; nothing from a pooler."""
    with store.listening() as connection:
        if is_pooled(connection):
            return
        channel = connection.execute(text(f"SELECT {CHANNEL}")).scalar_one()
        connection.exec_driver_sql(f'LISTEN "{channel}"')
        driver = connection.connection.driver_connection
        assert driver is not None
        while True:
            for message in driver.notifies(timeout=seconds, stop_after=1):
                yield message.payload
            yield None
