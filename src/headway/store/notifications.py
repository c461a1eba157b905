"""Wake-ups between servers by NOTIFY, as a hint only: whoever misses one polls anyway.

Never sent inside a job's transaction, because NOTIFY makes commits wait for one another.
"""

from collections.abc import Generator, Iterable
from typing import NamedTuple

from sqlalchemy import Text, bindparam, text

from headway.store.engine import Store
from headway.store.locks import Lock, settle
from headway.store.poolers import is_pooled
from headway.store.together import Line
from headway.store.transaction import CHANNEL, Transaction
from headway.store.types import Listed

EVERYBODY = ""
# As long as a cycle of the dispatcher may take, and wait for rows.
SECONDS = 5
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


class Heard(NamedTuple):
    """The *topics* that have come at once, none if nothing has, and the *line* they have come by,
    which is free until one listens on: whoever is to dispatch may do it there."""

    topics: frozenset[str]
    line: Line


def listen(store: Store, seconds: float, listener: str = "") -> Generator[Heard]:
    """Yield topics as they arrive, and none at least every *seconds*; nothing from a pooler.

    Of what the *listener* sends itself nothing is heard.
    """
    with store.listening() as connection:
        if is_pooled(connection):
            return
        settle(connection, Lock.DISPATCH, SECONDS, SECONDS)
        channel = connection.execute(text(f"SELECT {CHANNEL}")).scalar_one()
        connection.exec_driver_sql(f'LISTEN "{channel}"')
        line, driver = Line(connection), connection.connection.driver_connection
        assert driver is not None
        while True:
            # As a list: the driver lends nobody its connection before it has told everything.
            messages = list(driver.notifies(timeout=seconds, stop_after=1))
            said = [message.payload.partition(" ") for message in messages]
            others = (topic for topic, _, sender in said if not sender or sender != listener)
            yield Heard(frozenset(others), line)
