"""What one cycle of the dispatcher looks at, and the limits it keeps to.

Who wants to know why an entry is not dispatched looks at the same page.
"""

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import NamedTuple

from headway.config import Settings
from headway.domain.dispatching import KEPT_READY, NOTHING_READY, Limits
from headway.domain.front import Front
from headway.domain.routing import Share
from headway.domain.work_queue import WorkQueueEntry, dispatch_order, one_per_manifest
from headway.store.dispatchable import Look
from headway.store.executions import NOTHING_LIVES, oldest_live
from headway.store.onward import look_onward
from headway.store.servers import Workers
from headway.store.transaction import Transaction

MOST_IN_ONE_CYCLE = 2000

# Read beyond what could start at all, so that a cycle can say why these do not.
BEYOND = 20


class Page(NamedTuple):
    """Entries, best first; *full* if there may be more. What is delayed is due from *next_at* on,
    which may be over. No execution below *live_from* lives, as long as this cycle creates none."""

    entries: list[WorkQueueEntry]
    full: bool
    next_at: datetime | None
    live_from: int = 0


def read_page(
    tx: Transaction,
    settings: Settings,
    workers: Workers | None,
    elsewhere: Sequence[Share],
    free: int | None = None,
    front: Front | None = None,
) -> Page:
    """What the own *workers* take, and what an application sends *elsewhere*, best first.

    Read apart, so that neither hides the other when the page is full. Without *workers* everything
    is read: nobody knows them. Whoever knows how many of them are *free* reads no more than that
    for them. A *front* saves them from passing what is gone, where that takes long.
    """
    most = _most(settings)
    alone = not elsewhere and not settings.exclude_from_max_active_jobs and tx.on_postgresql
    known = front if alone else None
    if workers is None:
        return _read(tx, settings, None, most, known)
    hands = workers.slots * _ready(workers) if free is None else free
    own = _read(tx, settings, workers.shares, min(most, hands + BEYOND), known)
    if not elsewhere:
        return own
    others = _read(tx, settings, elsewhere, most)
    entries = sorted(one_per_manifest(own.entries + others.entries), key=dispatch_order)
    return Page(entries, own.full or others.full, own.next_at)


def limits_of(
    tx: Transaction, settings: Settings, workers: Workers | None, free: int | None = None
) -> Limits:
    """What binds a cycle at this moment; no more of the workers than are *free*, if one knows."""
    return Limits(
        settings.max_active_jobs,
        settings.exclude_from_max_active_jobs,
        None if workers is None else workers.slots,
        tx.now - settings.starvation_after,
        _ready(workers),
        free,
    )


def _ready(workers: Workers | None) -> int:
    return NOTHING_READY if workers is not None and workers.for_themselves else KEPT_READY


def _most(settings: Settings) -> int:
    """What a cycle could start at best; there is no use in reading much more."""
    limit = settings.max_active_jobs
    return MOST_IN_ONE_CYCLE if limit is None else min(MOST_IN_ONE_CYCLE, limit + BEYOND)


def _read(
    tx: Transaction,
    settings: Settings,
    taken: Sequence[Share] | None,
    most: int,
    front: Front | None = None,
) -> Page:
    per_group, aged_before = settings.max_queued_jobs_per_cycle, tx.now - settings.starvation_after
    if front is None:
        look = Look(tx, per_group, most, taken, aged_before)
        found = look.entries(settings.exclude_from_max_active_jobs)
        return Page(found, len(found) >= most, look.next_at)
    if front.is_good(monotonic()) and not is_over(front.next_at, tx.now):
        onward = look_onward(tx, front, front.live_from, per_group, most, taken)
        if len(onward) >= most:
            return Page(onward, True, front.next_at, front.live_from)
    ahead = front.looks_ahead
    oldest = oldest_live(tx) if ahead else 0
    live_from = NOTHING_LIVES if oldest is None else oldest
    look = Look(tx, per_group, most, taken, aged_before, live_from)
    front.keep(look.every_head, look.next_at, look.took, oldest, monotonic())
    # Where the lanes begin is known now: what stands before that need not be passed once more.
    entries: list[WorkQueueEntry] = []
    if ahead and not look.hurries:
        entries = look_onward(tx, front, live_from, per_group, most, taken)
    if len(entries) < most and not (entries and look.is_plain):
        entries = look.entries()
        front.go_on(entries)
    return Page(entries, len(entries) >= most, look.next_at, live_from)


def is_over(moment: datetime | None, now: datetime) -> bool:
    """Whether what is delayed until *moment* is due, if anything is."""
    return moment is not None and moment <= now
