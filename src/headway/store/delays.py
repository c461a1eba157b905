"""Queue entries that wait for a later time: a refused hand-over, or an exclusion that lasts."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Integer, and_, bindparam, func, or_, select, update

from headway.domain.work_queue import RestingTimes
from headway.store.eligibility import QUEUED, delayed, entry, queued, scheduled
from headway.store.tables import manifest, work_queue
from headway.store.transaction import Transaction, among, locked_in_order
from headway.store.types import Instant


def put_off(tx: Transaction, entry_ids: Sequence[int], pause: timedelta) -> None:
    """Count a refused hand-over on queued entries and leave them alone for a *pause*."""
    tx.connection.execute(
        update(work_queue)
        .where(locked_in_order(tx, work_queue, and_(QUEUED, among(tx, work_queue.c.id, entry_ids))))
        .values(
            dispatch_attempts=work_queue.c.dispatch_attempts + 1,
            scheduled_at=tx.now + pause,
            delayed=True,
        )
    )


def rest(tx: Transaction, until: Mapping[RestingTimes, datetime]) -> None:
    """Put off every scheduled entry whose manifest has these exclusions, until they end."""
    for times, moment in until.items():
        excluded = select(manifest.c.id).where(
            manifest.c.exclusions == times.exclusions,
            func.coalesce(manifest.c.time_zone, "UTC") == times.zone,
        )
        earlier = or_(work_queue.c.scheduled_at.is_(None), work_queue.c.scheduled_at < moment)
        chosen = and_(
            QUEUED, scheduled(work_queue), earlier, work_queue.c.manifest_id.in_(excluded)
        )
        tx.connection.execute(
            update(work_queue)
            .where(locked_in_order(tx, work_queue, chosen, wait=False))
            .values(scheduled_at=moment, delayed=True)
        )


_NOW = bindparam("now", type_=Instant)
_COME = (
    select(entry.c.id)
    .where(queued(entry), delayed(entry), entry.c.scheduled_at <= _NOW)
    .order_by(entry.c.scheduled_at)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(skip_locked=True)
)
_NEXT = select(func.min(entry.c.scheduled_at)).where(
    queued(entry), delayed(entry), entry.c.scheduled_at > _NOW
)


def ripen(tx: Transaction, limit: int) -> int:
    """Let at most *limit* entries whose time has come take their place in the order.

    What somebody else is writing at this moment ripens in the next cycle.
    """
    # Two statements: in one, a plan for any number of them would read the whole queue.
    ids = tx.connection.execute(_COME, {"now": tx.now, "limit": limit}).scalars().all()
    if ids:
        chosen = among(tx, work_queue.c.id, ids)
        tx.connection.execute(update(work_queue).where(chosen).values(delayed=False))
    return len(ids)


def next_scheduled_at(tx: Transaction) -> datetime | None:
    """When the next delayed entry becomes dispatchable, if one waits."""
    moment: datetime | None = tx.connection.execute(_NEXT, {"now": tx.now}).scalar_one()
    return moment
