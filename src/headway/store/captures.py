"""Notes nobody has sorted yet: added by people, counted by the page, marked when dealt with."""

from collections.abc import Collection

from sqlalchemy import func, insert, select, update

from headway.domain.azolla.artifacts import CaptureBuffer, CaptureStatus
from headway.store.artifact_rows import from_row, to_row
from headway.store.tables import capture_buffer
from headway.store.transaction import Transaction, among, word

IS_PENDING = capture_buffer.c.status == word(CaptureStatus.PENDING)


def add(tx: Transaction, one: CaptureBuffer) -> None:
    """Write a new capture."""
    tx.connection.execute(insert(capture_buffer).values(to_row(one)))


def count_pending(tx: Transaction) -> int:
    """How many captures nobody has dealt with."""
    counted = select(func.count()).select_from(capture_buffer).where(IS_PENDING)
    return tx.connection.execute(counted).scalar_one()


def listed(tx: Transaction, limit: int, *, only_pending: bool = True) -> list[CaptureBuffer]:
    """Captures, newest first."""
    newest = (capture_buffer.c.created_at.desc(), capture_buffer.c.capture_id.desc())
    chosen = select(capture_buffer).order_by(*newest).limit(limit)
    if only_pending:
        chosen = chosen.where(IS_PENDING)
    rows = tx.connection.execute(chosen).mappings()
    return [from_row(CaptureBuffer, dict(row)) for row in rows]


def mark_processed(tx: Transaction, capture_ids: Collection[str]) -> list[str]:
    """Note that these are dealt with; returns those that were still PENDING."""
    statement = (
        update(capture_buffer)
        .where(among(tx, capture_buffer.c.capture_id, capture_ids), IS_PENDING)
        .values(status=CaptureStatus.PROCESSED.value, updated_at=tx.now)
        .returning(capture_buffer.c.capture_id)
    )
    return sorted(tx.connection.execute(statement).scalars())
