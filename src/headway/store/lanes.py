"""The lanes of the queue: what stands first in every group, and first of every priority in it.

Read by a walk from lane to lane over the index, whatever the number of entries behind.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    and_,
    case,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from headway.domain.lanes import Lane
from headway.store.eligibility import in_order, ready
from headway.store.tables import execution, manifest_group, work_queue
from headway.store.transaction import Transaction

HEADS, AGED = "heads", "aged"

first = work_queue.alias("first_of_lane")
ahead = work_queue.alias("ahead")


def lanes(
    tx: Transaction, limit: int | None, aged_before: datetime | None, aged_limit: int | None
) -> tuple[list[Lane], list[Lane]]:
    """The best lane of each group in the order of dispatch, full groups last; and the oldest.

    Those are lanes of groups that have been neither full nor disabled since *aged_before*, and
    whose first entry was queued before that.
    """
    walked = _walk(tx)
    known = _with_groups(walked)
    heads = (
        select(literal_column(f"'{HEADS}'").label("kind"), *known.c)
        .where(known.c.opens_group)
        .order_by(known.c.full, known.c.group_priority.desc(), *in_order(known))
        .limit(limit)
        .subquery("heads")
    )
    parts: list[Select[Any]] = [select(heads)]
    if aged_before is not None:
        parts.append(select(_aged(known, aged_before, aged_limit)))
    rows = tx.connection.execute(union_all(*parts)).all()
    best = [_lane(row) for row in rows if row.kind == HEADS]
    oldest = [_lane(row) for row in rows if row.kind == AGED]
    return (
        sorted(best, key=lambda lane: (lane.full, lane.order)),
        sorted(oldest, key=lambda lane: lane.age),
    )


def _walk(tx: Transaction) -> CTE:
    """From the first entry of a lane to that of the next: lower in the same group, or in another.

    Entries without a group are a walk of their own, for NULL is neither before nor behind.
    """
    starts = [_ahead(ahead.c.group_id.is_not(None)), _ahead(ahead.c.group_id.is_(None))]
    walked = (
        select(*_columns(first), true().label("opens_group"))
        .where(first.c.id.in_([one.scalar_subquery() for one in starts]))
        .cte("walked", recursive=True)
    )
    lower = ahead.c.priority < walked.c.priority
    ungrouped = and_(walked.c.group_id.is_(None), ahead.c.group_id.is_(None))
    following = (
        _ahead(and_(ahead.c.group_id == walked.c.group_id, lower)),
        _ahead(ahead.c.group_id > walked.c.group_id),
        _ahead(and_(ungrouped, lower)),
    )
    if tx.on_postgresql:
        # The first of these that there is; with a join by id it would read the whole queue.
        of_these = (one.with_only_columns(*_columns(ahead)).correlate(walked) for one in following)
        found: Any = union_all(*of_these).limit(1).lateral("following")
        step = walked.join(found, true())
    else:
        found = first
        chosen = func.coalesce(*(one.scalar_subquery() for one in following))
        step = walked.join(first, first.c.id == chosen)
    opens_group = func.coalesce(found.c.group_id != walked.c.group_id, False)
    return walked.union_all(select(*_columns(found), opens_group).select_from(step))


def _columns(one: Any) -> tuple[ColumnElement[Any], ...]:
    return (one.c.group_id, one.c.priority, one.c.created_at, one.c.id)


def _ahead(where: ColumnElement[bool]) -> Select[tuple[int]]:
    return (
        select(ahead.c.id)
        .where(ready(ahead), where)
        .order_by(ahead.c.group_id, *in_order(ahead))
        .limit(1)
    )


def _with_groups(walked: CTE) -> Any:
    """The lanes of groups that are not disabled, with what their caps leave free."""
    active = (
        select(execution.c.group_id, func.count().label("active"))
        .group_by(execution.c.group_id)
        .subquery("active")
    )
    room = manifest_group.c.max_active_jobs - func.coalesce(active.c.active, 0)
    return (
        select(
            walked,
            func.coalesce(manifest_group.c.priority, 0).label("group_priority"),
            room.label("room"),
            case((room <= 0, 1), else_=0).label("full"),
            manifest_group.c.last_shut_at,
        )
        .select_from(
            walked.outerjoin(manifest_group, manifest_group.c.id == walked.c.group_id).outerjoin(
                active, active.c.group_id == walked.c.group_id
            )
        )
        .where(or_(manifest_group.c.id.is_(None), manifest_group.c.enabled))
        .subquery("known")
    )


def _aged(known: Any, before: datetime, limit: int | None) -> Any:
    return (
        select(literal_column(f"'{AGED}'").label("kind"), *known.c)
        .where(
            known.c.full == 0,
            known.c.created_at <= before,
            or_(known.c.last_shut_at.is_(None), known.c.last_shut_at <= before),
        )
        .order_by(known.c.created_at, known.c.id)
        .limit(limit)
        .subquery("oldest")
    )


def _lane(row: Any) -> Lane:
    return Lane(row.group_id, row.priority, row.created_at, row.id, row.group_priority, row.room)
