"""Which manifests a cycle of the manager queues, and why it does not queue the others. Pure.

The manager calls it to decide, and ``why`` calls it to tell beforehand what the manager decides.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from headway.domain.due import Due
from headway.domain.fairness import fair_shares, last_served
from headway.domain.manifest import DEPENDENT, DEPENDENTS, DORMANT, ManifestDispatchView
from headway.domain.readiness import Defaults, due_of, held_by, next_attempt

TROUBLED_PAUSE = timedelta(hours=1)


class Verdict(StrEnum):
    """The decision about a manifest in this cycle."""

    QUEUE = "queue"
    DEFER = "defer"
    SKIP = "skip"


class Decision(NamedTuple):
    """A manifest with the decision about it, the reason, and when to look at it again."""

    view: ManifestDispatchView
    verdict: Verdict
    reason: str
    wake_at: datetime | None = None
    scheduled_for: datetime | None = None
    not_before: datetime | None = None
    settle_until: datetime | None = None


def decide_all(
    views: Iterable[ManifestDispatchView],
    dead_lettered: Collection[int],
    now: datetime,
    defaults: Defaults,
    limit: int | None,
    after: int = 0,
) -> list[Decision]:
    """Decide about every view, then keep to the fair share of each group.

    Two passes: over what runs by time, then over what runs after its parents. Dormant dependents
    are in neither; what is said about them is only why. Where there are more groups than places
    they take turns, from the first *after* a group on.
    """
    views = list(views)
    by_time = [view for view in views if view.kind not in DEPENDENTS]
    after_parents = [view for view in views if view.kind == DEPENDENT]
    in_neither = [view for view in views if view.kind == DORMANT]
    decisions = [
        decide(view, dead_lettered, now, defaults)
        for view in (*by_time, *after_parents, *in_neither)
    ]
    return keep_to_shares(decisions, limit, now, after)


def last_group(decisions: Iterable[Decision], after: int) -> int:
    """The group at which this cycle's round ended: the next one begins after it."""
    served = Counter(one.view.group_id for one in decisions if one.verdict is Verdict.QUEUE)
    return last_served(served, after)


def decide(
    view: ManifestDispatchView, dead_lettered: Collection[int], now: datetime, defaults: Defaults
) -> Decision:
    """Decide about one manifest: guards first, then its schedule."""
    if view.trouble is not None:
        # Nothing tells when the row, or what this machine knows of time zones, is mended.
        reason = f"its row cannot be read: {view.trouble}"
        return Decision(view, Verdict.SKIP, reason, wake_at=now + TROUBLED_PAUSE)
    held = held_by(view, dead_lettered)
    if held is not None:
        # Whatever lifts the guard leaves a wake-up, so nothing looks here until then.
        return Decision(view, Verdict.SKIP, held)
    due = due_of(view, now, defaults)
    if not due.due:
        return Decision(
            view, Verdict.SKIP, due.reason, wake_at=due.next_at, settle_until=_settled(view, due)
        )
    delay, not_before = next_attempt(view, now, defaults)
    waits = not_before > now
    return Decision(
        view,
        Verdict.QUEUE,
        f"retry {view.failed_count} after {delay}" if waits else due.reason,
        scheduled_for=due.scheduled_for,
        not_before=not_before if waits else None,
        settle_until=_settled(view, due),
    )


def _settled(view: ManifestDispatchView, due: Due) -> datetime | None:
    """Up to when occurrences are skipped for good; not beyond one whose run may still fail."""
    return None if view.has_active_execution else due.skipped_until


def keep_to_shares(
    decisions: list[Decision], limit: int | None, now: datetime, after: int = 0
) -> list[Decision]:
    """Let at most *limit* manifests be queued, shared fairly among groups; defer the rest.

    Inside a group dependents go first, whose parent's run has waited for them, then the most
    overdue. It is fair among the candidates of this cycle, which were loaded fairly as well.
    """
    if limit is None:
        return decisions
    due = [one for one in decisions if one.verdict is Verdict.QUEUE]
    due.sort(
        key=lambda one: (one.scheduled_for is not None, one.scheduled_for, one.view.manifest_id)
    )
    wanted: dict[int, list[Decision]] = {}
    for one in due:
        wanted.setdefault(one.view.group_id, []).append(one)
    priorities = {group: ones[0].view.group_priority for group, ones in wanted.items()}
    counts = {group: len(ones) for group, ones in wanted.items()}
    shares = fair_shares(counts, priorities, limit, after)
    late = {one.view.manifest_id for group, ones in wanted.items() for one in ones[shares[group] :]}
    return [_deferred(one, now) if one.view.manifest_id in late else one for one in decisions]


def _deferred(one: Decision, now: datetime) -> Decision:
    reason = "due, but this cycle's share of its group is used up"
    return Decision(one.view, Verdict.DEFER, reason, wake_at=one.view.wake_at or now)
