"""How much waits already where more is to be queued, counted up to a limit."""

from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, and_, false, select

from headway.domain.names import may_be_stored
from headway.domain.work_queue import EntryStatus
from headway.store.reading.bounded import capped_count
from headway.store.tables import executions, manifest, manifest_group, work_queue
from headway.store.transaction import Transaction, word

QUEUED = work_queue.c.status == word(EntryStatus.QUEUED)
READY = and_(QUEUED, work_queue.c.delayed == false())


def of_group(tx: Transaction, name: str, most: int) -> int:
    """What waits in a group and may start."""
    if not may_be_stored(name):
        return 0
    key = select(manifest_group.c.id).where(manifest_group.c.name == name)
    return _counted(tx, and_(READY, work_queue.c.group_id == key.scalar_subquery()), most)


def beside_manifest(tx: Transaction, external_id: str, most: int) -> int:
    """What waits in the group of a manifest, or of the manifest alone if that is more: entries
    that wait for a later time too."""
    if not may_be_stored(external_id):
        return 0
    named = and_(manifest.c.external_id == external_id, manifest.c.removed_at.is_(None))
    own = _counted(tx, and_(QUEUED, work_queue.c.manifest_id == _one(manifest.c.id, named)), most)
    group = _one(manifest.c.group_id, named)
    return max(own, _counted(tx, and_(READY, work_queue.c.group_id == group), most))


def beside_execution(tx: Transaction, execution_id: int, most: int) -> int:
    """What waits in the group of an execution; of one without a group, what waits without one."""
    chosen = select(executions.c.group_id).where(executions.c.id == execution_id)
    group = tx.connection.execute(chosen).scalar_one_or_none()
    if group is None:
        return of_nobody(tx, most)
    return _counted(tx, and_(READY, work_queue.c.group_id == group), most)


def of_nobody(tx: Transaction, most: int) -> int:
    """What waits without any manifest."""
    return _counted(tx, and_(READY, work_queue.c.group_id.is_(None)), most)


def _one(column: ColumnElement[Any], chosen: ColumnElement[bool]) -> ScalarSelect[Any]:
    return select(column).where(chosen).scalar_subquery()


def _counted(tx: Transaction, chosen: ColumnElement[bool], most: int) -> int:
    rows = select(work_queue.c.id).where(chosen)
    return int(tx.connection.execute(capped_count(rows, most)).scalar_one())
