"""Sessions that were ended before their time, known to every web process."""

from datetime import datetime, timedelta

from sqlalchemy import select

from headway.store.tables import logout
from headway.store.transaction import Transaction, insert_or_ignore

# A session ends by the clock of the process that reads it, which may be behind the database's.
KEPT = timedelta(days=1)


def end(tx: Transaction, session_id: str, until: datetime) -> None:
    """Know this session no more; *until* then it would have lasted.

    >>> logouts.end(tx, "Zm9v", until)  # doctest: +SKIP
    """
    row = {"session_id": session_id, "until": until}
    tx.connection.execute(insert_or_ignore(tx, logout).values(row))


def has_ended(tx: Transaction, session_id: str) -> bool:
    """Whether somebody has ended this session.

    >>> logouts.has_ended(tx, "Zm9v")  # doctest: +SKIP
    False
    """
    one = select(logout.c.session_id).where(logout.c.session_id == session_id)
    return tx.connection.execute(one).first() is not None
