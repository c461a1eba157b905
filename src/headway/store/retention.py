"""Deleting what is old enough, in bounded batches; live work and open dead letters never are."""

from datetime import datetime

from sqlalchemy import ColumnElement, Table, and_, delete, exists, select

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import EntryStatus
from headway.store.tables import dead_letter, execution_history, manifest_state, work_queue
from headway.store.transaction import Transaction, word


def delete_finished(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete finished executions, except failures that still count towards a dead letter."""
    counting = exists().where(
        manifest_state.c.manifest_id == execution_history.c.manifest_id,
        execution_history.c.id > manifest_state.c.failures_after,
        execution_history.c.state == word(ExecutionState.FAILED),
    )
    old = and_(execution_history.c.finished_at < before, ~counting)
    return _delete(tx, execution_history, old, limit)


def delete_ended_entries(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete queue entries that ended without being dispatched."""
    ended = work_queue.c.status.in_([word(EntryStatus.CANCELLED), word(EntryStatus.FAILED)])
    return _delete(tx, work_queue, and_(ended, work_queue.c.ended_at < before), limit)


def delete_resolved_dead_letters(tx: Transaction, before: datetime, limit: int) -> int:
    """Delete dead letters a person has dealt with."""
    resolved = dead_letter.c.status != word(DeadLetterStatus.AWAITING_INTERVENTION)
    return _delete(tx, dead_letter, and_(resolved, dead_letter.c.resolved_at < before), limit)


def _delete(tx: Transaction, table: Table, old: ColumnElement[bool], limit: int) -> int:
    batch = select(table.c.id).where(old).order_by(table.c.id).limit(limit)
    return tx.connection.execute(delete(table).where(table.c.id.in_(batch))).rowcount
