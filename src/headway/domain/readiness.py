"""Whether one manifest is queued now, piece by piece. Pure: no database, no clock.

The manager decides with these functions, and whoever explains its decisions asks the same.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from headway.domain.dead_letter import failed_too_often
from headway.domain.dependencies import due_by_edges
from headway.domain.due import Due, MisfirePolicy
from headway.domain.gates import GateName
from headway.domain.manifest import DEPENDENT, DORMANT, ManifestDispatchView
from headway.domain.overlap import waits_for_the_end
from headway.domain.retry import RetryPolicy, jittered, retry_delay
from headway.domain.timing import decide_timing


@dataclass(frozen=True)
class Defaults:
    """What counts for a manifest that says nothing of its own.

    >>> minute, policy = timedelta(minutes=1), MisfirePolicy.FIRE_ONCE_NOW
    >>> Defaults(RetryPolicy(), 3, policy, minute).max_retries
    3
    """

    retry: RetryPolicy
    max_retries: int
    misfire_policy: MisfirePolicy
    misfire_threshold: timedelta


class Guard(NamedTuple):
    """Something that keeps a manifest from being queued whatever its schedule says."""

    gate: GateName
    held: bool
    reason: str


class _Rule(NamedTuple):
    """A guard of any manifest: what it asks of its view and of those dead-lettered in this cycle,
    and how it says that."""

    gate: GateName
    holds: Callable[[ManifestDispatchView, Collection[int]], bool]
    reason: Callable[[ManifestDispatchView], str]


_RULES = (
    _Rule(
        GateName.ENABLED,
        lambda view, dead: not view.enabled,
        lambda view: "the manifest is disabled",
    ),
    _Rule(
        GateName.GROUP_ENABLED,
        lambda view, dead: not view.group_enabled,
        lambda view: f"group {view.group_name!r} is disabled",
    ),
    _Rule(
        GateName.NO_DEAD_LETTER,
        lambda view, dead: view.manifest_id in dead,
        lambda view: "dead-lettered in this cycle",
    ),
    _Rule(
        GateName.NO_DEAD_LETTER,
        lambda view, dead: view.has_awaiting_dead_letter,
        lambda view: "a dead letter awaits intervention",
    ),
    _Rule(
        GateName.NOT_QUEUED,
        lambda view, dead: view.has_queued_work,
        lambda view: "already queued",
    ),
    _Rule(
        GateName.NOT_ACTIVE,
        lambda view, dead: view.has_active_execution and not view.may_overlap,
        lambda view: "already running",
    ),
)


def guards(view: ManifestDispatchView, dead_lettered: Collection[int]) -> tuple[Guard, ...]:
    """Every guard of a manifest, in the order in which they are asked."""
    return tuple(
        Guard(one.gate, one.holds(view, dead_lettered), one.reason(view)) for one in _RULES
    )


def held_by(view: ManifestDispatchView, dead_lettered: Collection[int]) -> str | None:
    """The first guard that keeps a manifest from being queued, in words."""
    for one in _RULES:
        if one.holds(view, dead_lettered):
            return one.reason(view)
    return None


def due_of(view: ManifestDispatchView, now: datetime, defaults: Defaults) -> Due:
    """By time, or after its parents; a dormant dependent is due by neither."""
    if view.kind == DORMANT:
        reason = "dormant: runs only when its parent activates it"
        return Due(False, None, None, reason, gate=GateName.PARENTS)
    if view.kind == DEPENDENT:
        by_edges = due_by_edges(list(view.edges.values()), view.join)
        return Due(by_edges.due, None, None, by_edges.reason, gate=GateName.PARENTS)
    timing = view.time.timing(view.schedule, defaults.misfire_policy, defaults.misfire_threshold)
    if view.has_active_execution and (reason := waits_for_the_end(timing) or ""):
        return Due(False, None, None, reason, gate=GateName.NOT_ACTIVE)
    return decide_timing(
        timing,
        view.external_id,
        view.settled_until,
        view.declared_at or now,
        now,
        retrying=view.failed_count > 0,
        failed_for=view.failed_for,
    )


def next_attempt(
    view: ManifestDispatchView, now: datetime, defaults: Defaults
) -> tuple[timedelta, datetime]:
    """How long a retry waits and until when; the job's own word counts more than the backoff.

    Counted from the failure: what is due long after it, a later run say, does not wait again.
    """
    failed_at = view.last_failed_at or now
    if not view.failed_count:
        return timedelta(0), failed_at
    if view.retry_at is not None:
        return view.retry_at - failed_at, view.retry_at
    policy = view.retry or defaults.retry
    delay = retry_delay(view.failed_count, policy)
    delay = jittered(delay, policy, view.external_id, view.failed_count)
    return delay, failed_at + delay


def deserves_dead_letter(view: ManifestDispatchView, defaults: Defaults) -> bool:
    """Whether a manifest has failed too often and no dead letter says so yet."""
    hopeless = view.failed_for_good or failed_too_often(
        view.failed_count, max_retries(view, defaults)
    )
    return hopeless and not view.has_awaiting_dead_letter


def max_retries(view: ManifestDispatchView, defaults: Defaults) -> int:
    """The manifest's own ``max_retries``, or the deployment's."""
    return defaults.max_retries if view.max_retries is None else view.max_retries
