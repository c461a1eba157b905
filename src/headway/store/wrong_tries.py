"""How often an address was wrong about who it is, counted for all web processes.

A count is kept for each minute, and for a few minutes only.
"""

from datetime import datetime, timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from headway.store.tables import wrong_try
from headway.store.transaction import Transaction

KEPT = timedelta(minutes=5)
FORGOTTEN_AT_ONCE = 100


def count(tx: Transaction, address: str) -> None:
    """Count one wrong try of *address*, in this minute.

    >>> wrong_tries.count(tx, "192.0.2.1")  # doctest: +SKIP
    """
    row = {"minute": minute_of(tx.now), "address": address, "tries": 1}
    one_more = {"tries": wrong_try.c.tries + 1}
    dialect = postgresql if tx.on_postgresql else sqlite
    added = dialect.insert(wrong_try).values(row)
    key = [wrong_try.c.minute, wrong_try.c.address]
    tx.connection.execute(added.on_conflict_do_update(index_elements=key, set_=one_more))
    _forget_some(tx)


def counted(tx: Transaction, address: str) -> int:
    """How often *address* was wrong in this minute.

    >>> wrong_tries.counted(tx, "192.0.2.1")  # doctest: +SKIP
    3
    """
    now = minute_of(tx.now)
    statement = select(wrong_try.c.tries).where(
        wrong_try.c.minute == now, wrong_try.c.address == address
    )
    return tx.connection.execute(statement).scalar_one_or_none() or 0


def minute_of(moment: datetime) -> datetime:
    """The minute that *moment* is in.

    >>> minute_of(datetime(2030, 1, 1, 12, 30, 59)).second
    0
    """
    return moment.replace(second=0, microsecond=0)


def _forget_some(tx: Transaction) -> None:
    """More than one for each that comes: whoever has many addresses does not fill the disk."""
    key = tuple_(wrong_try.c.minute, wrong_try.c.address)
    old = (
        select(wrong_try.c.minute, wrong_try.c.address)
        .where(wrong_try.c.minute < tx.now - KEPT)
        .order_by(wrong_try.c.minute)
        .limit(FORGOTTEN_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    tx.connection.execute(delete(wrong_try).where(key.in_(old)))
