"""The lanes of the queue: what stands first in every group, and first of every priority in it.

Read by a walk from lane to lane over the index, whatever the number of entries behind.
"""

from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Integer,
    Label,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    null,
    or_,
    select,
    true,
    union_all,
)

from headway.domain.lanes import Lane
from headway.store.eligibility import delayed, group_open, in_order, queued, ready
from headway.store.live import may_live
from headway.store.tables import execution, manifest_group, work_queue
from headway.store.transaction import Asking, Draft, Transaction, draft_for
from headway.store.types import Instant

HEADS, AGED, DELAYED, TOOK = "heads", "aged", "delayed", "took"


class Lanes(NamedTuple):
    """The best lanes, the oldest, when the first of what counts as delayed is due, and how long
    PostgreSQL took to find them, how many there are in all."""

    heads: list[Lane]
    aged: list[Lane]
    next_at: datetime | None
    took: timedelta
    in_all: int | None


first = work_queue.alias("first_of_lane")
ahead = work_queue.alias("ahead")


def lanes(
    tx: Transaction,
    limit: int | None,
    aged_before: datetime | None,
    aged_limit: int | None,
    live_from: int = 0,
) -> Lanes:
    """The best lane of each group in the order of dispatch, full groups last; and the oldest.

    Those are lanes of groups that have been neither full nor disabled since *aged_before*, and
    whose first entry was queued before that. No live execution has an id below *live_from*.
    """
    parts = lanes_of(draft_for(tx), limit is None, aged_before is None, aged_limit is None)
    asked = {"limit": limit, "aged_before": aged_before, "aged_limit": aged_limit}
    given = {name: value for name, value in asked.items() if value is not None}
    given |= {"now": tx.now, "live_from": live_from}
    rows = tx.ask(parts, given)
    best = [_lane(row) for row in rows if row.kind == HEADS]
    oldest = [_lane(row) for row in rows if row.kind == AGED]
    return Lanes(
        sorted(best, key=lambda lane: (lane.full, lane.order)),
        sorted(oldest, key=lambda lane: lane.age),
        next((row.created_at for row in rows if row.kind == DELAYED), None),
        next((row.created_at - row.last_shut_at for row in rows if row.kind == TOOK), timedelta()),
        next((row.id for row in rows if row.kind == TOOK), None),
    )


@cache
def lanes_of(
    draft: Draft, every_head: bool, nobody_ages: bool, all_aged: bool
) -> CompoundSelect[Any]:
    """The statement behind :func:`lanes`, with or without its limits."""
    known = _with_groups(draft, walk(draft))
    heads = (
        select(literal_column(f"'{HEADS}'").label("kind"), *known.c)
        .where(known.c.opens_group)
        .order_by(known.c.full, known.c.group_priority.desc(), *in_order(known))
        .limit(None if every_head else bindparam("limit", type_=Integer))
        .subquery("heads")
    )
    parts: list[Select[Any]] = [select(heads), _delayed(known)]
    if not nobody_ages:
        parts.append(select(_aged(known, all_aged)))
    if draft.on_postgresql:
        parts.append(_took(known))
    return union_all(*parts)


def _delayed(known: Any) -> Select[Any]:
    """A row that says nothing but when."""
    # The first by the index: as a minimum it might be looked for by reading the whole queue.
    first_due = (
        select(ahead.c.scheduled_at)
        .where(queued(ahead), delayed(ahead))
        .order_by(ahead.c.scheduled_at)
        .limit(1)
        .subquery("first_due")
    )
    return _saying(DELAYED, known, created_at=first_due.c.scheduled_at)


def _took(known: Any) -> Select[Any]:
    """A row that says when the statement has come, when the rows before this were found, and how
    many lanes there are."""
    found_at, came_at = func.clock_timestamp(), func.statement_timestamp()
    in_all = select(func.count()).select_from(known).scalar_subquery()
    return _saying(TOOK, known, created_at=found_at, last_shut_at=came_at, id=in_all)


def _saying(kind: str, known: Any, **said: ColumnElement[Any]) -> Select[Any]:
    nothing = {one.name: cast(null(), one.type) for one in known.c}
    label: Label[str] = literal_column(f"'{kind}'").label("kind")
    return select(label, *((nothing | said)[one.name].label(one.name) for one in known.c))


def walk(tx: Asking) -> CTE:
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


def _with_groups(draft: Draft, walked: CTE) -> Any:
    """The lanes of groups that are not disabled, with what their caps leave free."""
    active = (
        select(execution.c.group_id, func.count().label("active"))
        .where(execution.c.id >= bindparam("live_from", type_=BigInteger), may_live(draft))
        .group_by(execution.c.group_id)
        .subquery("active")
    )
    room = manifest_group.c.max_active_jobs - func.coalesce(active.c.active, 0)
    return (
        select(
            walked,
            func.coalesce(manifest_group.c.priority, 0).label("group_priority"),
            room.label("room"),
            manifest_group.c.max_active_jobs.label("cap"),
            case((room <= 0, 1), else_=0).label("full"),
            manifest_group.c.last_shut_at,
        )
        .select_from(
            walked.outerjoin(manifest_group, manifest_group.c.id == walked.c.group_id).outerjoin(
                active, active.c.group_id == walked.c.group_id
            )
        )
        .where(group_open())
        .cte("known")
    )


def _aged(known: Any, every_one: bool) -> Any:
    before = bindparam("aged_before", type_=Instant)
    return (
        select(literal_column(f"'{AGED}'").label("kind"), *known.c)
        .where(
            known.c.full == 0,
            known.c.created_at <= before,
            or_(known.c.last_shut_at.is_(None), known.c.last_shut_at <= before),
        )
        .order_by(known.c.created_at, known.c.id)
        .limit(None if every_one else bindparam("aged_limit", type_=Integer))
        .subquery("oldest")
    )


def _lane(row: Any) -> Lane:
    first = (row.group_id, row.priority, row.created_at, row.id)
    return Lane(*first, row.group_priority, row.room, row.cap)
