"""What waits in the work queue."""

from typing import Any

from sqlalchemy import ColumnElement, Row, Select, select

from headway.domain.views import EntryOverview, QueuedEntry
from headway.domain.work_queue import EntryStatus, Source
from headway.store.tables import manifest, manifest_group, work_queue
from headway.store.transaction import Transaction, among, word

QUEUED = work_queue.c.status == word(EntryStatus.QUEUED)
_NAMED = work_queue.outerjoin(manifest, manifest.c.id == work_queue.c.manifest_id)
_SHOWN = [
    "id",
    "workflow",
    "source",
    "priority",
    "created_at",
    "scheduled_at",
    "scheduled_for",
    "attempts",
    "max_attempts",
]


def _of_group(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Looked up for each entry: a join would be planned to read all groups."""
    own = select(column).where(manifest_group.c.id == work_queue.c.group_id)
    return own.correlate(work_queue).scalar_subquery()


def _entries(*more: ColumnElement[Any]) -> Select[Any]:
    return (
        select(
            *(work_queue.c[name] for name in _SHOWN),
            manifest.c.external_id,
            _of_group(manifest_group.c.name).label("group_name"),
            *more,
        )
        .select_from(_NAMED)
        .where(QUEUED)
    )


def list_queued(tx: Transaction, limit: int | None = None) -> list[QueuedEntry]:
    """What waits in the queue, oldest first."""
    statement = _entries(work_queue.c.input).order_by(work_queue.c.id).limit(limit)
    return [_queued(row) for row in tx.connection.execute(statement)]


def find(tx: Transaction, entry_id: int) -> QueuedEntry | None:
    """One entry that waits, with its input."""
    statement = _entries(work_queue.c.input).where(work_queue.c.id == entry_id)
    row = tx.connection.execute(statement).one_or_none()
    return None if row is None else _queued(row)


def overviews(tx: Transaction, *chosen: ColumnElement[bool]) -> list[EntryOverview]:
    """The entries that are *chosen*."""
    more = (work_queue.c.delayed, _of_group(manifest_group.c.priority).label("group_priority"))
    rows = tx.connection.execute(_entries(*more).where(*chosen))
    return [_overview(row) for row in rows]


def of_ids(tx: Transaction, ids: list[int]) -> list[EntryOverview]:
    """These entries in this order, as far as they still wait."""
    found = {one.id: one for one in overviews(tx, among(tx, work_queue.c.id, ids))}
    return [found[one] for one in ids if one in found]


def of_manifest(tx: Transaction, manifest_id: int) -> list[EntryOverview]:
    """What waits of one manifest, best first."""
    found = overviews(tx, work_queue.c.manifest_id == manifest_id)
    return sorted(found, key=lambda one: (-one.priority, one.created_at, one.id))


def _queued(row: Row[Any]) -> QueuedEntry:
    return QueuedEntry(**dict(row._mapping) | {"source": Source(row.source)})


def _overview(row: Row[Any]) -> EntryOverview:
    values = dict(row._mapping) | {"source": Source(row.source), "delayed": bool(row.delayed)}
    values["group_priority"] = values["group_priority"] or 0
    return EntryOverview(**values)
