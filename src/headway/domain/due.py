"""Is a manifest due? Decided from its schedule, what is settled, and ``now``; nothing else.

``settled_until`` is the nominal time up to which the occurrences of a manifest are settled (run,
skipped, cancelled or acknowledged). The time of the last success plays no part, so a manual run
just before ten o'clock cannot swallow the ten o'clock run.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from headway.domain.gates import GateName
from headway.domain.schedule import Once, Schedule

AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
"""The due time of an interval or cron manifest that has never run: before every real ``now``."""


class MisfirePolicy(StrEnum):
    """What to do with occurrences missed by more than the misfire threshold.

    >>> MisfirePolicy("do_nothing") is MisfirePolicy.DO_NOTHING
    True
    """

    FIRE_ONCE_NOW = "fire_once_now"
    DO_NOTHING = "do_nothing"
    CATCH_UP = "catch_up"


class Due(NamedTuple):
    """The answer for one manifest, with its reason.

    ``scheduled_for`` is the newest nominal occurrence not later than ``now``; setting
    ``settled_until`` to it settles every past occurrence and no future one. With ``due`` it is
    what the run stands for; without ``due`` it was missed and is skipped; None means that no
    unsettled occurrence has passed. On a first run it is ``now``, or what its first attempt stood
    for; when catching up it is the oldest one that is still to run. ``next_at`` is the next
    occurrence once that is settled, hence when to look again; None means never.

    ``coalesced`` counts the other occurrences the run stands for (up to a limit), and
    ``skipped_until`` is the newest occurrence nobody will run (missed, excluded, beyond the
    catch-up limit): ``settled_until`` may be moved there at once. ``gate`` is what *reason* is
    about: the last that was asked.

    >>> Due(True, AT_ONCE, None, "first run").due
    True
    """

    due: bool
    scheduled_for: datetime | None
    next_at: datetime | None
    reason: str
    coalesced: int = 0
    skipped_until: datetime | None = None
    gate: GateName = GateName.DUE


def due_at(schedule: Schedule, settled_until: datetime | None) -> datetime | None:
    """Return when *schedule* is due next: maybe in the past, :data:`AT_ONCE`, or None for never.

    >>> from headway.domain.schedule import every
    >>> due_at(every(hours=1), datetime(2025, 1, 1, 9, tzinfo=UTC)).hour
    10
    """
    if settled_until is not None:
        return schedule.next_after(settled_until)
    if isinstance(schedule, Once):
        return schedule.at
    return None if schedule.kind == "none" else AT_ONCE


def is_due(schedule: Schedule, settled_until: datetime | None, now: datetime) -> bool:
    """Return whether an unsettled occurrence of *schedule* has come, misfires aside.

    >>> from headway.domain.schedule import every
    >>> is_due(every(hours=1), None, datetime(2025, 1, 1, tzinfo=UTC))
    True
    """
    when = due_at(schedule, settled_until)
    return when is not None and when <= now


def decide(
    schedule: Schedule,
    settled_until: datetime | None,
    now: datetime,
    misfire_policy: MisfirePolicy,
    misfire_threshold: timedelta,
) -> Due:
    """Return whether to run now, what that run stands for, and when to look again.

    >>> from headway.domain.schedule import every
    >>> ten, later = datetime(2025, 1, 1, 10, tzinfo=UTC), datetime(2025, 1, 1, 13, 2, tzinfo=UTC)
    >>> policy, minute = MisfirePolicy.DO_NOTHING, timedelta(minutes=1)
    >>> decide(every(minutes=5), ten, later, policy, minute).due
    False
    """
    when = due_at(schedule, settled_until)
    if when is None:
        return Due(False, None, None, "has no further occurrence by time")
    if when > now:
        return Due(False, None, when, f"not due before {as_text(when)}")
    newest = _newest_occurrence(schedule, settled_until, now)
    following = schedule.next_after(newest)
    if settled_until is None and not isinstance(schedule, Once):
        return Due(True, newest, following, "first run")
    if isinstance(schedule, Once):
        return Due(True, newest, following, f"due since {as_text(when)}")
    due, reason = judge_misfire(when, newest, now, misfire_policy, misfire_threshold)
    skipped, gate = (None, GateName.DUE) if due else (newest, GateName.NOT_MISSED)
    return Due(due, newest, following, reason, skipped_until=skipped, gate=gate)


def judge_misfire(
    when: datetime,
    newest: datetime,
    now: datetime,
    misfire_policy: MisfirePolicy,
    misfire_threshold: timedelta,
) -> tuple[bool, str]:
    """Return whether to run, and why, when the first of some occurrences was due at *when*.

    *newest* is when the last of them was due. Only "do nothing" ever says no.

    >>> one, two = datetime(2025, 1, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, 2, tzinfo=UTC)
    >>> judge_misfire(one, two, two, MisfirePolicy.DO_NOTHING, timedelta(minutes=1))
    (True, 'due since 2025-01-01 02:00:00 UTC, earlier ones were missed')
    """
    overdue = now - when
    if overdue <= misfire_threshold:
        return True, f"due since {as_text(when)}"
    if misfire_policy is not MisfirePolicy.DO_NOTHING:
        return True, f"overdue by {overdue}, fires once now"
    if now - newest <= misfire_threshold:
        return True, f"due since {as_text(newest)}, earlier ones were missed"
    return (
        False,
        f"missed {as_text(newest)} by more than the misfire threshold of {misfire_threshold}",
    )


def _newest_occurrence(
    schedule: Schedule, settled_until: datetime | None, now: datetime
) -> datetime:
    if settled_until is not None:
        return schedule.latest(settled_until, now) or now
    return schedule.at if isinstance(schedule, Once) else now


def as_text(moment: datetime) -> str:
    """Return *moment* as reasons show it.

    >>> as_text(datetime(2025, 1, 1, 10, tzinfo=UTC))
    '2025-01-01 10:00:00 UTC'
    """
    return f"{moment.isoformat(' ', 'seconds')[:19]} UTC"
