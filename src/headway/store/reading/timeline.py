"""What ran between two moments: the newest of it where there is more than can be shown."""

from datetime import datetime
from typing import Any

from sqlalchemy import Select, select

from headway.domain.views import ExecutionFilter, Timeline
from headway.store.reading.bounded import EXAMINED
from headway.store.reading.execution_pages import before_id
from headway.store.reading.executions import overviews
from headway.store.reading.names import group_named
from headway.store.tables import execution, execution_history
from headway.store.transaction import Transaction

history = execution_history.c
_COLUMNS = (history.id, history.dispatched_at, history.started_at, history.finished_at)


def timeline(
    tx: Transaction, start: datetime, end: datetime, group: str | None, limit: int
) -> Timeline:
    """What ran between *start* and *end*, by start; of more than *limit* the newest."""
    group_id = None if group is None else group_named(tx, group)
    if group is not None and group_id is None:
        return Timeline(start, end, (), truncated=False)
    live = _live(tx, end, group_id)
    read = max(EXAMINED, limit + 1)
    rows = tx.connection.execute(_newest(tx, start, end, group_id, read)).all()
    ended = [row for row in rows if _ran(row, start, end)]
    room = max(0, limit - len(live))
    kept = ended[:room]
    truncated = len(ended) + len(live) > limit or _cut(rows, read, start, group_id)
    since = _complete_since(kept, group_id) if truncated and kept else start
    ids = {*live[:limit], *(row.id for row in kept), *_over_the_end(tx, end, group_id, read)}
    shown = sorted(
        overviews(tx, sorted(ids)[-limit:]),
        key=lambda one: (one.started_at or one.dispatched_at, one.id),
    )
    return Timeline(max(start, since), end, tuple(shown), truncated)


def first_dispatch(tx: Transaction) -> datetime | None:
    """When the first execution that is kept was dispatched."""
    firsts = [
        tx.connection.execute(
            select(table.c.dispatched_at).order_by(table.c.id).limit(1)
        ).scalar_one_or_none()
        for table in (execution, execution_history)
    ]
    return min((one for one in firsts if one is not None), default=None)


def _live(tx: Transaction, end: datetime, group_id: int | None) -> list[int]:
    live = execution.c
    statement = select(live.id).where(live.started_at < end)
    if group_id is not None:
        statement = statement.where(live.group_id == group_id)
    return sorted(tx.connection.execute(statement).scalars(), reverse=True)


def _newest(
    tx: Transaction, start: datetime, end: datetime, group_id: int | None, read: int
) -> Select[Any]:
    """What has ended, newest first: by its end, and in one group by its id, as they are indexed."""
    statement = select(*_COLUMNS).limit(read)
    if group_id is None:
        ended = statement.where(history.finished_at >= start, history.finished_at < end)
        return ended.order_by(history.finished_at.desc(), history.id.desc())
    below = before_id(tx, ExecutionFilter(until=end), None)
    of_group = statement.where(history.group_id == group_id).order_by(history.id.desc())
    return of_group if below is None else of_group.where(history.id < below)


def _over_the_end(tx: Transaction, end: datetime, group_id: int | None, read: int) -> set[int]:
    """What had begun before *end* and ended after it; in one group this is found with the rest."""
    if group_id is not None or end > tx.now:
        return set()
    later = (
        select(*_COLUMNS)
        .where(history.finished_at >= end)
        .order_by(history.finished_at, history.id)
        .limit(read)
    )
    rows = tx.connection.execute(later)
    return {row.id for row in rows if row.started_at is not None and row.started_at < end}


def _ran(row: Any, start: datetime, end: datetime) -> bool:
    return row.started_at is not None and row.started_at < end and row.finished_at >= start


def _cut(rows: Any, read: int, start: datetime, group_id: int | None) -> bool:
    """Whether there may be more than was read."""
    if len(rows) < read:
        return False
    return group_id is None or bool(rows[-1].dispatched_at >= start)


def _complete_since(kept: list[Any], group_id: int | None) -> datetime:
    oldest = kept[-1]
    moment: datetime = oldest.finished_at if group_id is None else oldest.dispatched_at
    return moment
