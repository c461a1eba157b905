"""When groups were last full or disabled while something of theirs was queued.

Waiting for one's own group is not starving: ageing counts from here (docs/decisions/010).
"""

from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import and_, bindparam, func, not_, or_, select, update

from headway.store.eligibility import entry, in_order, ready
from headway.store.live import may_live
from headway.store.tables import execution, manifest_group
from headway.store.transaction import Draft, Transaction, draft_for, locked_in_order
from headway.store.types import Instant


def note_shut_groups(tx: Transaction, at_most_every: timedelta) -> int:
    """Note the groups that are full or disabled now, unless that was noted a little while ago."""
    moments = {"now": tx.now, "noted_before": tx.now - at_most_every}
    return len(tx.ask(noting(draft_for(tx)), moments))


@cache
def noting(draft: Draft) -> Any:
    """The statement behind :func:`note_shut_groups`."""
    active = (
        select(execution.c.group_id, func.count().label("active"))
        .where(may_live(draft))
        .group_by(execution.c.group_id)
        .subquery("active")
    )
    capped = manifest_group.alias("capped")
    full = manifest_group.c.id.in_(
        select(capped.c.id)
        .join(active, active.c.group_id == capped.c.id)
        .where(active.c.active >= capped.c.max_active_jobs)
    )
    # Asked of shut groups alone; as an EXISTS it could be joined, by reading the whole queue.
    first = (
        select(entry.c.id)
        .where(ready(entry), entry.c.group_id == manifest_group.c.id)
        .order_by(entry.c.group_id, *in_order(entry))
        .limit(1)
        .scalar_subquery()
    )
    waiting = first.is_not(None)
    noted = manifest_group.c.last_shut_at
    stale = or_(noted.is_(None), noted <= bindparam("noted_before", type_=Instant))
    shut = and_(or_(not_(manifest_group.c.enabled), full), stale, waiting)
    return (
        update(manifest_group)
        .where(locked_in_order(draft, manifest_group, shut, wait=False))
        .values(last_shut_at=draft.now)
        .returning(manifest_group.c.id)
    )
