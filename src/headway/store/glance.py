"""Everything a cycle of the dispatcher asks, in one statement, as long as the queue is short.

For one job on an idle server the way to the database and back takes longer than the answer, and a
cycle goes that way five times: who lives, which lanes there are, what stands in them, what is live,
and whether it may start at once. A queue of a few entries needs no lanes, since all of it is seen.
For PostgreSQL: SQLite is no way away.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    ColumnElement,
    Select,
    Subquery,
    Text,
    bindparam,
    func,
    select,
    true,
)
from sqlalchemy.types import JSON

from headway.domain.admission import Active
from headway.domain.routing import Share
from headway.domain.work_queue import WorkQueueEntry, dispatch_order, one_per_manifest
from headway.store.eligibility import delayed, eligible, entry, group_open, in_order, queued, ready
from headway.store.entry_rows import OF_GROUP, entry_columns, to_entry
from headway.store.executions import NOBODY_WAITS
from headway.store.live import counted as counted_of
from headway.store.servers import Workers
from headway.store.tables import manifest_group, server, work_queue
from headway.store.transaction import CLOCK, Draft, Transaction, among_found, draft_for
from headway.store.types import Listed

# More than these are not few: then their lanes are read, each as far as it takes.
FEW = 20

front = work_queue.alias("front")
later = work_queue.alias("later")
_STANDING = ("as_known", "queued", "next_at", "active", "nobody_waits", "held")


class Glance(NamedTuple):
    """All that could be dispatched, best first, and what is live. It may start at once in the name
    of the *holder*, if there is one. What is delayed is due from *next_at* on, which is not over.
    Though nothing could be dispatched, something may be *queued*."""

    entries: list[WorkQueueEntry]
    queued: bool
    next_at: datetime | None
    active: Active
    holder: str | None


def glance(
    tx: Transaction,
    workers: Workers,
    owner: str,
    per_group: int | None,
    excluded: Collection[str],
) -> Glance | None:
    """What there is for *workers*, to be dispatched by *owner*; None means that this takes a closer
    look: others live than these, or there is too much.

    If there is anything, *owner*'s lease is held as by ``hold_to_start``.
    """
    statement = glance_of(draft_for(tx), workers.shares, tx.ticking)
    given = {"now": tx.now, "known": workers.ids, "owner": owner, "live_from": 0}
    rows = tx.ask(statement, given)
    as_known, seen, next_at, active, nobody_waits, held = rows[0][: len(_STANDING)]
    if not as_known or seen > FEW or (next_at is not None and next_at <= tx.now):
        return None
    found = [to_entry(row[len(_STANDING) :]) for row in rows if row[len(_STANDING)] is not None]
    if per_group is not None and _most_of_one_group(found) > per_group:
        return None
    return Glance(
        sorted(one_per_manifest(found), key=dispatch_order),
        seen > 0,
        next_at,
        Active.counted(active or (), excluded),
        held if nobody_waits else None,
    )


def _most_of_one_group(entries: Sequence[WorkQueueEntry]) -> int:
    return max(Counter(one.group_id for one in entries).values(), default=0)


# As many as there are ways to route; each is put together anew when servers come or go.
@lru_cache(maxsize=32)
def glance_of(draft: Draft, taken: tuple[Share, ...], ticking: bool) -> Select[Any]:
    """The statement behind :func:`glance`."""
    few = (
        select(front.c.id)
        .where(ready(front))
        .order_by(front.c.group_id, *in_order(front))
        .limit(FEW + 1)
        .cte("few")
        .prefix_with("MATERIALIZED")
    )
    standing = _standing(draft, few, CLOCK if ticking else draft.now)
    found = _found(draft, taken, few)
    return select(*standing.c, *found.c).select_from(standing.outerjoin(found, true()))


def _standing(draft: Draft, few: CTE, clock: ColumnElement[Any]) -> Subquery:
    """One row that says how everything stands."""
    queued_now = select(func.count()).select_from(few).scalar_subquery()
    living = (
        select(server.c.id)
        .where(server.c.expires_at > draft.now)
        .order_by(server.c.id.collate("C"))
    )
    known = bindparam("known", type_=Listed(Text()))
    first_due = (
        select(later.c.scheduled_at)
        .where(queued(later), delayed(later))
        .order_by(later.c.scheduled_at)
        .limit(1)
    )
    counted = counted_of(draft).subquery("counted")
    active = select(func.json_agg(func.json_build_array(*counted.c), type_=JSON))
    # A lock is written: nobody takes it for nothing.
    held = (
        select(server.c.id)
        .where(
            server.c.id == bindparam("owner", type_=Text),
            server.c.expires_at > clock,
            queued_now > 0,
        )
        .with_for_update(read=True, key_share=True)
    )
    said = (
        func.array(living.scalar_subquery(), type_=Listed(Text())) == known,
        queued_now,
        first_due.scalar_subquery(),
        active.scalar_subquery(),
        NOBODY_WAITS,
        held.scalar_subquery(),
    )
    labelled = (one.label(name) for name, one in zip(_STANDING, said, strict=True))
    return select(*labelled).subquery("standing")


def _found(draft: Draft, taken: tuple[Share, ...], few: CTE) -> Subquery:
    """Those of the few that may run now, in groups that are open."""
    return (
        eligible(draft, taken)
        .with_only_columns(*entry_columns(draft, entry), *OF_GROUP)
        .outerjoin(manifest_group, manifest_group.c.id == entry.c.group_id)
        .where(among_found(draft, entry.c.id, select(few.c.id)), group_open())
        .subquery("found")
    )
