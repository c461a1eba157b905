"""Which workflows are asked for although no living server knows them, and since when.

Kept in one mark, so that it outlives the processes that look.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, or_, select

from headway.store.eligibility import QUEUED
from headway.store.marks import read_mark, write_mark
from headway.store.tables import work_queue
from headway.store.transaction import Transaction, among

MARK = "unknown-workflows"


@dataclass(frozen=True)
class Seen:
    """What the last look found: when it was, and since when each workflow is unknown."""

    looked_at: datetime | None
    since: dict[str, datetime]


def last_seen(tx: Transaction) -> Seen:
    """What the last look found, whoever looked."""
    kept = read_mark(tx, MARK)
    if kept is None:
        return Seen(None, {})
    looked_at, since = json.loads(kept)
    moments = {name: datetime.fromisoformat(moment) for name, moment in since.items()}
    return Seen(datetime.fromisoformat(looked_at), moments)


def note_seen(tx: Transaction, since: Mapping[str, datetime]) -> None:
    """Keep what this look found."""
    moments = {name: moment.isoformat() for name, moment in since.items()}
    write_mark(tx, MARK, json.dumps([tx.now.isoformat(), moments]))


def queued_by_workflow(tx: Transaction) -> dict[str, int]:
    """How many entries are queued for each workflow. Reads the whole queue: not for each cycle."""
    statement = select(work_queue.c.workflow, func.count()).where(QUEUED)
    rows = tx.connection.execute(statement.group_by(work_queue.c.workflow))
    return {workflow: count for workflow, count in rows}


def queued_before(
    tx: Transaction, workflows: Collection[str], moment: datetime, limit: int
) -> list[int]:
    """Entries of these workflows that wait since before *moment*, the oldest first."""
    if not workflows:
        return []
    due = or_(work_queue.c.scheduled_at.is_(None), work_queue.c.scheduled_at <= moment)
    statement = (
        select(work_queue.c.id)
        .where(
            QUEUED,
            among(tx, work_queue.c.workflow, workflows),
            work_queue.c.created_at <= moment,
            due,
        )
        .order_by(work_queue.c.created_at, work_queue.c.id)
        .limit(limit)
    )
    return list(tx.connection.execute(statement).scalars())
