"""Everything that is queued starts at once, if it is little and there is room for all of it.

For one job on an idle server a cycle of the dispatcher goes to the database and back five times,
and has next to nothing to decide: whatever the order, all of it goes. Here PostgreSQL finds that
out itself, in one way there and back, under the dispatcher's lock and by the same limits. Whatever
it is not sure of takes a cycle: anything unusual, and whatever might have to wait or to fail.
"""

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Integer,
    Text,
    and_,
    any_,
    bindparam,
    exists,
    func,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.exc import DBAPIError

from headway.domain.execution import Execution
from headway.domain.routing import Share
from headway.domain.starting import Hands
from headway.domain.work_queue import MAX_INPUT_BYTES
from headway.store.eligibility import (
    delayed,
    eligible,
    entry,
    group_open,
    in_order,
    queued,
    ready,
    scheduled,
)
from headway.store.execution_rows import just_started
from headway.store.executions import IS_LOCAL, PENDING
from headway.store.folding import fold_found
from headway.store.glance import FEW
from headway.store.live import may_live
from headway.store.locks import IS_LEADING, TAKE_AND_NOTE, Lock
from headway.store.servers import Workers
from headway.store.tables import execution, manifest, manifest_group, server, work_queue
from headway.store.together import Line
from headway.store.transaction import CLOCK, DraftTogether, among_found
from headway.store.types import Instant, Listed

front = work_queue.alias("front")
later = work_queue.alias("later")
DRAFT = DraftTogether(on_postgresql=True)
LOCK = {"lock": int(Lock.DISPATCH)}
NO_LIMIT = 2**62


class Room(NamedTuple):
    """How many may be live at once, but for those of workflows that are *excluded*, and how many of
    a group are looked at together."""

    max_active_jobs: int | None
    excluded: Collection[str] = ()
    per_group: int | None = None


def start_all(
    line: Line,
    workers: Workers,
    hands: Hands,
    room: Room,
    next_at: datetime | None,
    *,
    of_manifests: bool,
) -> list[Execution]:
    """Start everything that is queued in these *hands*, or nothing of it.

    Sent by a *line* of its own, as long as just these *workers* live, and what is delayed is due
    from *next_at* on, which is not over. If some are *of_manifests* one has to say so.
    """
    local = workers.workflows if of_manifests else workers.in_no_group
    given = {
        "known": workers.ids,
        "living": len(workers.ids),
        "workflows": sorted(local & frozenset(hands.workflows)),
        "owner": hands.owner,
        "free": min(hands.free, FEW if room.per_group is None else min(FEW, room.per_group)),
        "slots": workers.slots,
        "most": NO_LIMIT if room.max_active_jobs is None else room.max_active_jobs,
        "excluded": sorted(room.excluded),
        "next_at": next_at,
    }
    first_steps = tuple(sorted(hands.first_steps.items()))
    statement = starting_all(workers.shares, first_steps, of_manifests)
    try:
        _, created = line.ask((TAKE_AND_NOTE, LOCK), (statement, given))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        return []  # a cycle finds out which entry it is, and what becomes of it
    return [just_started(row[1:], row[0]) for row in created]


# As many as there are ways to route and sets of workflows in one process, twice.
@lru_cache(maxsize=32)
def starting_all(
    taken: tuple[Share, ...], first_steps: tuple[tuple[str, str], ...], of_manifests: bool
) -> Any:
    """The statement behind :func:`start_all`, after the one that takes the lock."""
    # What somebody else is changing waits for the next cycle.
    few = (
        select(
            front.c.id,
            _is_usual(of_manifests).label("is_usual"),
            not_(_is_excluded(front)).label("needs_slot"),
        )
        .where(ready(front))
        .order_by(front.c.group_id, *in_order(front))
        .limit(FEW + 1)
        .with_for_update(skip_locked=True)
        .cte("few")
        .prefix_with("MATERIALIZED")
    )
    many = select(func.count()).select_from(few).scalar_subquery()
    all_fit = and_(
        IS_LEADING,
        many.between(1, bindparam("free", type_=Integer)),
        select(func.bool_and(few.c.is_usual)).scalar_subquery(),
        _is_room_for(few, many),
        *(_fit_in_their_groups(few, many, taken) if of_manifests else ()),
        _nothing_else_is_due(),
        _only_these_live(),
        _lease_held(),
    )
    found = select(few.c.id).where(select(all_fit).scalar_subquery())
    return fold_found(DRAFT, found, first_steps, of_manifests=of_manifests)


def _is_usual(of_manifests: bool) -> ColumnElement[bool]:
    """Whether an entry is like most: never tried, and with no time of its own."""
    usual = and_(
        front.c.scheduled_at.is_(None),
        front.c.dead_letter_id.is_(None),
        front.c.crashes == 0,
        func.octet_length(front.c.input) <= MAX_INPUT_BYTES,
        front.c.workflow == any_(bindparam("workflows", type_=Listed(Text()))),
    )
    if of_manifests:
        return usual
    return and_(usual, front.c.manifest_id.is_(None), front.c.group_id.is_(None))


def _fit_in_their_groups(
    few: CTE, many: ColumnElement[int], taken: tuple[Share, ...]
) -> tuple[ColumnElement[bool], ...]:
    """Whether all may run now, in groups that are open and have room for them."""
    found = (
        eligible(DRAFT, taken)
        .with_only_columns(entry.c.group_id, manifest_group.c.max_active_jobs.label("cap"))
        .outerjoin(manifest_group, manifest_group.c.id == entry.c.group_id)
        .where(among_found(DRAFT, entry.c.id, select(few.c.id)), group_open(), _is_usual_of_its())
        .cte("found")
        .prefix_with("MATERIALIZED")
    )
    active = (
        select(execution.c.group_id, func.count().label("active"))
        .where(may_live(DRAFT))
        .group_by(execution.c.group_id)
        .subquery("active")
    )
    asked = (
        select(found.c.group_id, found.c.cap, func.count().label("more"))
        .where(found.c.cap.is_not(None))
        .group_by(found.c.group_id, found.c.cap)
        .subquery("asked")
    )
    too_many = select(asked.c.group_id).select_from(
        asked.outerjoin(active, active.c.group_id == asked.c.group_id)
    )
    too_many = too_many.where(asked.c.more + func.coalesce(active.c.active, 0) > asked.c.cap)
    all_found = select(func.count()).select_from(found).scalar_subquery() == many
    return all_found, not_(exists(too_many))


def _is_usual_of_its() -> ColumnElement[bool]:
    """Whether the manifest of an entry is there, if it has one, and like most: one that may
    overlap is told of each start, and one with exclusions may have to rest."""
    of_manifest = and_(
        manifest_group.c.id.is_not(None),
        not_(manifest.c.allow_overlap),
        or_(not_(scheduled(entry)), manifest.c.exclusions.is_(None)),
    )
    return or_(and_(entry.c.manifest_id.is_(None), entry.c.group_id.is_(None)), of_manifest)


def _is_excluded(one: Any) -> ColumnElement[bool]:
    excluded: ColumnElement[bool] = one.c.workflow == any_(
        bindparam("excluded", type_=Listed(Text()))
    )
    return excluded


def _is_room_for(few: CTE, many: ColumnElement[int]) -> ColumnElement[bool]:
    """For so *many* more, and nothing waits to be claimed, which would come first."""
    needed = select(func.count()).select_from(few).where(few.c.needs_slot).scalar_subquery()
    waiting = func.count().filter(PENDING, IS_LOCAL)
    local = func.count().filter(IS_LOCAL)
    live = func.count().filter(not_(_is_excluded(execution)))
    return (
        select(
            and_(
                waiting == 0,
                local + many <= bindparam("slots", type_=BigInteger),
                or_(needed == 0, live + needed <= bindparam("most", type_=BigInteger)),
            )
        )
        .select_from(execution)
        .where(may_live(DRAFT))
        .scalar_subquery()
    )


def _nothing_else_is_due() -> ColumnElement[bool]:
    first_due = (
        select(later.c.scheduled_at)
        .where(queued(later), delayed(later))
        .order_by(later.c.scheduled_at)
        .limit(1)
        .scalar_subquery()
    )
    known = bindparam("next_at", type_=Instant)
    return and_(first_due.is_not_distinct_from(known), func.coalesce(known > DRAFT.now, true()))


def _only_these_live() -> ColumnElement[bool]:
    known = server.c.id == any_(bindparam("known", type_=Listed(Text())))
    everybody = and_(
        func.count() == bindparam("living", type_=Integer),
        func.count() == func.count().filter(known),
    )
    return select(everybody).where(server.c.expires_at > DRAFT.now).scalar_subquery()


def _lease_held() -> ColumnElement[bool]:
    """A lock is written: it is asked for last, and nobody takes it for nothing."""
    own = server.c.id == bindparam("owner", type_=Text)
    held = select(server.c.id).where(own, server.c.expires_at > CLOCK)
    return held.with_for_update(read=True, key_share=True).scalar_subquery().is_not(None)
