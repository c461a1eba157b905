"""Entries that are cancelled before they start: they stay in the queue, with the reason."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, update

from headway.domain.work_queue import EntryStatus
from headway.store.tables import work_queue
from headway.store.transaction import Transaction, locked_in_order, word

WAITING = work_queue.c.status.in_([word(EntryStatus.QUEUED), word(EntryStatus.HELD)])
TOLD = ("id", "manifest_id", "scheduled_for", "parents_seen")


def cancel_entries(tx: Transaction, chosen: ColumnElement[bool], reason: str) -> Sequence[Any]:
    """Cancel those of *chosen* that are queued, or held until their child is free.

    Returns what each was to stand for; that nobody will do it now, is for the caller to settle.
    """
    statement = (
        update(work_queue)
        .where(locked_in_order(tx, work_queue, and_(WAITING, chosen)))
        .values(status=EntryStatus.CANCELLED.value, ended_at=tx.now, ended_reason=reason)
        .returning(*(work_queue.c[name] for name in TOLD))
    )
    return tx.connection.execute(statement).all()
