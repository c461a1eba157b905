"""When one manifest is due, with all its options: misfires, jitter, exclusions and the first run.

With default options this is :func:`headway.domain.due.decide`, which it generalises.
"""

import difflib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from headway.domain.due import Due, MisfirePolicy, as_text, judge_misfire
from headway.domain.exclusion_kinds import Exclusion, Then
from headway.domain.exclusions import check_exclusions, excluded, free_from
from headway.domain.gates import GateName
from headway.domain.occurrences import Occurrences
from headway.domain.schedule import Cron, Never, Once, Schedule, counts_from_success
from headway.domain.schedule_rules import (
    SEARCH_FROM,
    aware_utc,
    check_whole,
    check_zone,
    refused,
)
from headway.domain.text import shown

LONGEST_VARIANCE = timedelta(days=366)
LONGEST_THRESHOLD = timedelta(days=3653)
CATCH_UP_LIMITS = range(1, 10_001)

Choice = TypeVar("Choice", bound=StrEnum)

_NO_MORE = "has no further occurrence by time"


class FirstRun(StrEnum):
    """When a manifest that has never run is due.

    >>> FirstRun("at_once") is FirstRun.AT_ONCE
    True
    """

    AT_ONCE = "at_once"
    AT_FIRST_OCCURRENCE = "at_first_occurrence"


@dataclass(frozen=True)
class Timing:
    """A schedule with its options, checked together.

    ``tz`` is the zone on whose clock exclusions are compared; None means the schedule's own.

    >>> from headway.domain.schedule import every
    >>> Timing(every(minutes=5), variance=timedelta(seconds=30)).zone_name
    'UTC'
    """

    schedule: Schedule
    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE_NOW
    misfire_threshold: timedelta = timedelta(seconds=60)
    catch_up_limit: int = 100
    variance: timedelta = timedelta(0)
    exclusions: tuple[Exclusion, ...] = ()
    first_run: FirstRun = FirstRun.AT_ONCE
    tz: str | None = None

    def __post_init__(self) -> None:
        policy = _one_of(MisfirePolicy, "misfire policy", self.misfire_policy)
        object.__setattr__(self, "misfire_policy", policy)
        object.__setattr__(self, "first_run", _one_of(FirstRun, "first run", self.first_run))
        object.__setattr__(self, "exclusions", check_exclusions(self.exclusions))
        _check_span("misfire threshold", self.misfire_threshold, LONGEST_THRESHOLD)
        _check_span("variance", self.variance, LONGEST_VARIANCE)
        check_whole("catch-up limit", self.catch_up_limit, CATCH_UP_LIMITS, "catch_up_limit=100")
        if self.tz is not None:
            check_zone(self.tz)
        _check_together(self)

    @property
    def zone_name(self) -> str:
        """The zone on whose clock exclusions are compared."""
        if self.tz is None:
            return self.schedule.tz if isinstance(self.schedule, Cron) else "UTC"
        return self.tz

    def occurrences(self, key: str) -> Occurrences:
        """Return the occurrences of the manifest called *key*."""
        return Occurrences(self.schedule, self.exclusions, self.zone_name, self.variance, key)


def decide_timing(
    timing: Timing,
    key: str,
    settled_until: datetime | None,
    declared_at: datetime,
    now: datetime,
    *,
    retrying: bool = False,
    failed_for: datetime | None = None,
) -> Due:
    """Return whether to run now, what that run stands for, and when to look again.

    *key* names the manifest for its jitter; *declared_at* is when this schedule was first
    declared, and counts only until something is settled. *retrying*: its last run failed, so what
    is due was not missed, however late; it stands for the same as that (*failed_for*), unless the
    clock has told a newer occurrence since.

    >>> from datetime import UTC
    >>> from headway.domain.schedule import cron
    >>> declared = datetime(2025, 1, 1, 12, tzinfo=UTC)
    >>> patient = Timing(cron.daily(), first_run=FirstRun.AT_FIRST_OCCURRENCE)
    >>> decide_timing(patient, "report", None, declared, declared).reason
    'not due before 2025-01-02 00:00:00 UTC'
    """
    declared_at, now = aware_utc(declared_at), aware_utc(now)
    if settled_until is None and _runs_at_once(timing, declared_at):
        return _first_run(timing, key, declared_at, now, failed_for)
    since = _counted_from(timing.schedule, settled_until, declared_at)
    some = timing.occurrences(key).after(since)
    first = some.first(since)
    when = first and some.due_time(first)
    if first is None or when is None:
        return Due(False, None, None, _NO_MORE)
    skipped = some.skipped_before(since, first, now)
    if when > now:
        return Due(False, None, when, f"not due before {as_text(when)}", skipped_until=skipped)
    if held := excluded(some.exclusions, now, some.tz):
        return _held(some, held, now, skipped)
    if timing.misfire_policy is MisfirePolicy.CATCH_UP:
        return _caught_up(timing, some, since, first, now, skipped)
    newest = some.newest(since, now) or first
    owed = retrying or isinstance(timing.schedule, Once)
    due, reason = _judged(timing, when, some.due_time(newest) or when, now, owed)
    following = _next_due(some, newest)
    if not due:
        gate = GateName.NOT_MISSED
        return Due(False, newest, following, reason, skipped_until=newest, gate=gate)
    stands_for = _what_failed(timing, since, failed_for) or newest
    coalesced = some.count(since, newest) - 1
    return Due(True, stands_for, following, reason, coalesced, skipped)


def settled_by_success(
    timing: Timing,
    key: str,
    settled_until: datetime | None,
    scheduled_for: datetime | None,
    now: datetime,
    *,
    overlapping: bool = False,
) -> datetime | None:
    """Return ``settled_until`` after a success at *now* of the run that stood for *scheduled_for*.

    None for *scheduled_for* means a manual run. An interval counts from the success. Every other
    schedule keeps to its nominal times: a run settles its own and all that came due while it ran,
    or its own alone when catching up or *overlapping* others; a manual run settles nothing.

    >>> from datetime import UTC
    >>> from headway.domain.schedule import every
    >>> noon, later = datetime(2025, 1, 1, 12, tzinfo=UTC), datetime(2025, 1, 1, 12, 7, tzinfo=UTC)
    >>> fixed = Timing(every(minutes=5, fixed_rate=True))
    >>> settled_by_success(fixed, "poll", None, noon, later).minute
    5
    """
    catches_up = timing.misfire_policy is MisfirePolicy.CATCH_UP
    if counts_from_success(timing.schedule) and not catches_up:
        return max(now, settled_until or now)
    if scheduled_for is None:
        return settled_until
    settled = max(scheduled_for, settled_until or scheduled_for)
    if catches_up or overlapping:
        return settled
    some = timing.occurrences(key).after(settled)
    return some.newest(settled, now) or settled


def _what_failed(timing: Timing, since: datetime, failed_for: datetime | None) -> datetime | None:
    """What an interval is retried for: only its success starts the next."""
    unsettled = failed_for is not None and failed_for > since
    return failed_for if unsettled and counts_from_success(timing.schedule) else None


def _first_run(
    timing: Timing, key: str, declared_at: datetime, now: datetime, failed_for: datetime | None
) -> Due:
    some = timing.occurrences(key)
    when = some.due_time(declared_at)
    if when is None:
        return Due(False, None, None, _NO_MORE)
    if when > now:
        return Due(False, None, when, f"first run not due before {as_text(when)}")
    if held := excluded(some.exclusions, now, some.tz):
        return _held(some, held, now, None)
    retried = failed_for is not None and failed_for >= declared_at
    return Due(True, failed_for if retried else now, _next_due(some, now), "first run")


def _runs_at_once(timing: Timing, declared_at: datetime) -> bool:
    """Whether a first run comes before the schedule's own; not when declared at a skipped time."""
    if isinstance(timing.schedule, Once | Never) or timing.first_run is not FirstRun.AT_ONCE:
        return False
    found = excluded(timing.exclusions, declared_at, timing.zone_name)
    return found is None or found.then is Then.DEFER


def _counted_from(
    schedule: Schedule, settled_until: datetime | None, declared_at: datetime
) -> datetime:
    if settled_until is not None:
        return aware_utc(settled_until)
    return schedule.at - timedelta.resolution if isinstance(schedule, Once) else declared_at


def _held(some: Occurrences, held: Exclusion, now: datetime, skipped: datetime | None) -> Due:
    reason = f"due, but nothing runs {held.describe()}"
    # Not spread once more: it is late, and whoever looks when the exclusion has ended finds it due.
    free = free_from(some.exclusions, now, some.tz)
    gate = GateName.NOT_EXCLUDED
    return Due(False, None, free, reason, skipped_until=skipped, gate=gate)


def _judged(
    timing: Timing, when: datetime, newest: datetime, now: datetime, owed: bool
) -> tuple[bool, str]:
    if owed:
        return True, f"due since {as_text(when)}"
    return judge_misfire(when, newest, now, timing.misfire_policy, timing.misfire_threshold)


def _caught_up(
    timing: Timing,
    some: Occurrences,
    since: datetime,
    first: datetime,
    now: datetime,
    skipped: datetime | None,
) -> Due:
    """The oldest run still to be made up for, in order, if those beyond the limit are left out."""
    runs = list(islice(some.backwards(since, now), timing.catch_up_limit + 1)) or [first]
    dropped = runs.pop() if len(runs) > timing.catch_up_limit else None
    oldest, skipped = runs[-1], dropped or skipped
    when = some.due_time(oldest) or now
    if when > now:
        return Due(False, None, when, f"not due before {as_text(when)}", skipped_until=skipped)
    reason = f"due since {as_text(when)}" + (f", {len(runs)} to catch up" if len(runs) > 1 else "")
    coalesced = some.count(dropped or since, oldest) - 1
    return Due(True, oldest, _next_due(some, oldest), reason, coalesced, skipped)


def _next_due(some: Occurrences, after: datetime) -> datetime | None:
    some = some.after(after)
    found = some.first(after)
    return found and some.due_time(found)


def _one_of(kind: type[Choice], name: str, value: str) -> Choice:
    choices = [str(choice) for choice in kind]
    if not isinstance(value, str) or value not in choices:
        near = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
        rule = f"must be one of {', '.join(choices)}"
        raise refused(name, value, rule, repr(near[0] if near else choices[0]))
    return kind(value)


def _check_span(name: str, value: timedelta, longest: timedelta) -> None:
    if not isinstance(value, timedelta) or not timedelta(0) <= value <= longest:
        rule = f"must be a timedelta from 0 to {longest.days} days"
        raise refused(name, value, rule, "timedelta(seconds=60)")
    if value.microseconds:
        raise refused(name, value, "must be whole seconds", "timedelta(seconds=60)")


def _check_together(timing: Timing) -> None:
    schedule = timing.schedule
    if not isinstance(schedule, Schedule):
        raise refused("schedule", schedule, "must be a schedule", "every(minutes=5)")
    if timing.variance and isinstance(schedule, Once | Never):
        rule = f"must be left out: it spreads repeated runs, and this one runs {_how(schedule)}"
        raise refused("variance", timing.variance, rule, "every(minutes=5)")
    if timing.exclusions and isinstance(schedule, Never):
        rule = "must be left out: this one runs only when triggered"
        raise refused("exclusions", timing.exclusions[0].describe(), rule, "every(minutes=5)")
    if timing.exclusions and _never_runs(schedule, timing.exclusions, timing.zone_name):
        words = "; ".join(one.describe() for one in timing.exclusions if one.then is Then.SKIP)
        rule = f"would never run, as it lies in what is excluded: {shown(words)}"
        raise refused("schedule", schedule.describe(), rule, 'exclude.weekends(then="defer")')


@lru_cache(maxsize=4096)
def _never_runs(schedule: Schedule, exclusions: tuple[Exclusion, ...], tz: str) -> bool:
    """Cached because the store rebuilds timings often."""
    since = schedule.at - timedelta.resolution if isinstance(schedule, Once) else SEARCH_FROM
    return Occurrences(schedule, exclusions, tz).after(since).first(since) is None


def _how(schedule: Schedule) -> str:
    return "once" if isinstance(schedule, Once) else "only when triggered"
