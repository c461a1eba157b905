"""Captures: notes that nobody has sorted yet."""

from sqlalchemy import func, select

from headway.domain.azolla.artifacts import CaptureStatus
from headway.store.tables import capture_buffer
from headway.store.transaction import Transaction, word


def count_pending(tx: Transaction) -> int:
    """How many captures wait for somebody."""
    pending = capture_buffer.c.status == word(CaptureStatus.PENDING)
    return int(tx.connection.execute(select(func.count()).where(pending)).scalar_one())
