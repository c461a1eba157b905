"""The requests of peers that were taken: whoever sends one again is refused, by every server.

A nonce is kept for five minutes, longer than any request it could belong to is believed.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import delete, select, tuple_

from headway.store.tables import nonce
from headway.store.transaction import Transaction, insert_or_ignore

BELIEVED = timedelta(seconds=60)
KEPT = timedelta(minutes=5)
FORGOTTEN_AT_ONCE = 100


class Taken(StrEnum):
    """Whether a request is new and of now."""

    NEW = "NEW"
    STALE = "STALE"
    REPLAYED = "REPLAYED"


def take(tx: Transaction, source: str, value: str, sent_at: datetime) -> Taken:
    """Remember the request *source* says it sent then; by the database's clock, for all servers."""
    if abs(tx.now - sent_at) > BELIEVED:
        return Taken.STALE
    row = {"source_azolla_id": source, "nonce": value, "seen_at": tx.now}
    # By the row that came back: not every driver counts what an INSERT left out.
    written = insert_or_ignore(tx, nonce).values(row).returning(nonce.c.nonce)
    if tx.connection.execute(written).first() is None:
        return Taken.REPLAYED
    _forget_some(tx)
    return Taken.NEW


def _forget_some(tx: Transaction) -> None:
    """More than one for each that comes: the table stays as small as five minutes of requests."""
    key = tuple_(nonce.c.source_azolla_id, nonce.c.nonce)
    old = (
        select(nonce.c.source_azolla_id, nonce.c.nonce)
        .where(nonce.c.seen_at < tx.now - KEPT)
        .order_by(nonce.c.seen_at)
        .limit(FORGOTTEN_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    tx.connection.execute(delete(nonce).where(key.in_(old)))
