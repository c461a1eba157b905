"""Wake-ups between servers by NOTIFY, as a hint only: whoever misses one polls anyway.

Never sent inside a job's transaction, because NOTIFY makes commits wait for one another.
"""

from collections.abc import Generator, Iterable

from sqlalchemy import Text, bindparam, text

from headway.store.engine import Store
from headway.store.poolers import is_pooled
from headway.store.transaction import CHANNEL, Transaction
from headway.store.types import Listed

EVERYBODY = ""
_NOTIFY = text(f"SELECT pg_notify({CHANNEL}, :topic)")
# Nothing is lost with a hint: nobody waits until it is on the disk.
_HINT = text(
    f"SELECT set_config('synchronous_commit', 'off', true), pg_notify({CHANNEL}, topic)"
    " FROM unnest(:topics) AS topic"
).bindparams(bindparam("topics", type_=Listed(Text())))


def notify(store: Store, topics: Iterable[str], sender: str = "") -> None:
    """Tell every listening server that there is something to do for these *topics*.

    Who listens under the same name as the *sender* does not hear it.
    """
    with store.notifying() as connection:
        connection.execute(_HINT, {"topics": [f"{topic} {sender}".strip() for topic in topics]})


def notify_at_commit(tx: Transaction, topic: str = EVERYBODY) -> None:
    """Tell every listening server, once the caller's transaction commits, to look around.

    Any number of calls in one transaction with the same *topic* are one notification.
    """
    if tx.on_postgresql:
        tx.connection.execute(_NOTIFY, {"topic": topic})


def listen(store: Store, seconds: float, listener: str = "") -> Generator[str | None]:
    """Yield each topic as it arrives, and None at least every *seconds*; nothing from a pooler.

    Of what the *listener* sends itself nothing is heard.
    """
    with store.listening() as connection:
        if is_pooled(connection):
            return
        channel = connection.execute(text(f"SELECT {CHANNEL}")).scalar_one()
        connection.exec_driver_sql(f'LISTEN "{channel}"')
        driver = connection.connection.driver_connection
        assert driver is not None
        while True:
            for message in driver.notifies(timeout=seconds, stop_after=1):
                topic, _, sender = message.payload.partition(" ")
                if not sender or sender != listener:
                    yield topic
            yield None
