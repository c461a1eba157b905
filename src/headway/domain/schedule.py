"""When a manifest runs by itself: every so often, by cron expression, once, or never.

Occurrences are nominal instants in UTC. Nothing here knows the present; :mod:`headway.domain.due`
decides what is due.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import ClassVar, TypedDict

from cronsim import CronSim

from headway.domain.cron_factory import CronFactory
from headway.domain.schedule_rules import (
    SEARCH_FROM,
    added_up,
    aware_utc,
    check_cron,
    check_interval,
    check_once,
    refused_interval,
)
from headway.domain.text import shown
from headway.domain.wall_clock import latest_occurrence, next_occurrence, zone
from headway.errors import ScheduleError


@dataclass(frozen=True)
class Every:
    """Run again one *interval* after what was last settled; whole seconds, 1 second to 10 years.

    A success settles the moment it ended at, so the interval is the pause between two runs. With
    *fixed_rate* it settles the newest point not later than that on the grid of its own nominal
    time, so runs start an interval apart however long they take.

    >>> Every(timedelta(minutes=5)).next_after(datetime(2025, 1, 1, tzinfo=UTC)).minute
    5
    """

    interval: timedelta
    fixed_rate: bool = False
    kind: ClassVar[str] = "interval"

    def __post_init__(self) -> None:
        check_interval(self.interval)
        if not isinstance(self.fixed_rate, bool):
            raise refused_interval("fixed_rate", self.fixed_rate, "must be True or False")

    def next_after(self, moment: datetime) -> datetime | None:
        """Return *moment* plus the interval."""
        try:
            return aware_utc(moment) + self.interval
        except OverflowError:
            return None

    def latest(self, since: datetime, until: datetime) -> datetime | None:
        """Return the last boundary in (*since*, *until*], counted in intervals from *since*."""
        since = aware_utc(since)
        passed = (aware_utc(until) - since) // self.interval
        return since + passed * self.interval if passed > 0 else None

    def describe(self) -> str:
        """Return the schedule in words."""
        seconds = int(self.interval.total_seconds())
        parts = []
        for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
            count, seconds = divmod(seconds, size)
            if count:
                parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
        return "every " + " ".join(parts) + (", at a fixed rate" if self.fixed_rate else "")


@dataclass(frozen=True)
class Cron:
    """Run when the wall clock in *tz* matches *expression* (5 fields, or 6 with seconds first).

    >>> Cron("0 9 * * *", "Europe/Berlin").next_after(datetime(2025, 1, 1, tzinfo=UTC)).hour
    8
    """

    expression: str
    tz: str = "UTC"
    kind: ClassVar[str] = "cron"

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", check_cron(self.expression, self.tz))

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first occurrence strictly after *moment*."""
        return next_occurrence(self.expression, self._zone, aware_utc(moment))

    def latest(self, since: datetime, until: datetime) -> datetime | None:
        """Return the last occurrence in (*since*, *until*], found by searching backwards."""
        found = latest_occurrence(self.expression, self._zone, aware_utc(until))
        return found if found and found > aware_utc(since) else None

    def describe(self) -> str:
        """Return cronsim's reading of the expression, and the zone unless it is UTC."""
        text: str = CronSim(self.expression, SEARCH_FROM).explain()
        return text if self.tz == "UTC" else f"{text} ({self.tz})"

    @property
    def _zone(self) -> tzinfo:
        return zone(self.tz) or UTC


@dataclass(frozen=True)
class Once:
    """Run a single time, at *at*.

    >>> Once(datetime(2025, 1, 1, 10, tzinfo=UTC)).describe()
    'once at 2025-01-01 10:00:00 UTC'
    """

    at: datetime
    kind: ClassVar[str] = "once"

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", check_once(self.at))

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the one occurrence if it is still ahead of *moment*."""
        return self.at if self.at > aware_utc(moment) else None

    def latest(self, since: datetime, until: datetime) -> datetime | None:
        """Return the one occurrence if it lies in (*since*, *until*]."""
        return self.at if aware_utc(since) < self.at <= aware_utc(until) else None

    def describe(self) -> str:
        """Return the schedule in words."""
        return f"once at {self.at:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class Never:
    """Never due by time: runs when triggered, or after a parent.

    >>> Never().next_after(datetime(2025, 1, 1, tzinfo=UTC)) is None
    True
    """

    kind: ClassVar[str] = "none"

    def next_after(self, moment: datetime) -> datetime | None:
        """Return None."""
        return None

    def latest(self, since: datetime, until: datetime) -> datetime | None:
        """Return None."""
        return None

    def describe(self) -> str:
        """Return the schedule in words."""
        return "only when triggered"


Schedule = Every | Cron | Once | Never


def every(
    interval: timedelta | None = None,
    *,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    fixed_rate: bool = False,
) -> Every:
    """Return an interval schedule from a timedelta or from amounts that are added up.

    The interval counts from the end of the last success; with *fixed_rate* from when it was due.

    >>> every(hours=1, minutes=30) == every(timedelta(minutes=90))
    True
    """
    amounts = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
    total = added_up(amounts)
    if interval is None:
        return Every(total, fixed_rate)
    if any(amounts.values()):
        raise refused_interval("interval", interval, "cannot be combined with amounts")
    return Every(interval, fixed_rate)


cron = CronFactory(Cron)
"""See :class:`CronFactory`."""


def once(at: datetime) -> Once:
    """Return a schedule with one occurrence, at the aware datetime *at*.

    >>> once(datetime(2025, 1, 1, tzinfo=UTC)).kind
    'once'
    """
    return Once(at)


class ScheduleFields(TypedDict):
    """A schedule as the plain values of its database columns.

    >>> schedule_to_fields(every(minutes=5))["interval_seconds"]
    300
    """

    schedule_kind: str
    interval_seconds: int | None
    cron_expression: str | None
    time_zone: str | None
    once_at: datetime | None
    fixed_rate: bool


def schedule_to_fields(schedule: Schedule) -> ScheduleFields:
    """Return the columns that store *schedule*; those of other kinds are None.

    >>> schedule_to_fields(cron("0 9 * * *"))["time_zone"]
    'UTC'
    """
    fields = ScheduleFields(
        schedule_kind=schedule.kind,
        interval_seconds=None,
        cron_expression=None,
        time_zone=None,
        once_at=None,
        fixed_rate=False,
    )
    match schedule:
        case Every(interval, fixed_rate):
            fields["interval_seconds"] = int(interval.total_seconds())
            fields["fixed_rate"] = fixed_rate
        case Cron(expression, tz):
            fields["cron_expression"], fields["time_zone"] = expression, tz
        case Once(at):
            fields["once_at"] = at
    return fields


def schedule_from_fields(
    schedule_kind: str,
    interval_seconds: int | None = None,
    cron_expression: str | None = None,
    time_zone: str | None = None,
    once_at: datetime | None = None,
    fixed_rate: bool = False,
) -> Schedule:
    """Return the schedule stored in these columns, checked like a new one.

    >>> schedule_from_fields(**schedule_to_fields(cron("0 9 * * *")))
    Cron(expression='0 9 * * *', tz='UTC')
    """
    match schedule_kind:
        case "interval" if interval_seconds is not None:
            return every(seconds=interval_seconds, fixed_rate=fixed_rate)
        case "cron" if cron_expression is not None:
            return Cron(cron_expression, time_zone or "UTC")
        case "once" if once_at is not None:
            return Once(once_at)
        case "none":
            return Never()
    raise ScheduleError(
        f"schedule kind {shown(schedule_kind)} must be interval, cron, once or none, "
        "each with its own column filled, for example 'interval' with interval_seconds=300"
    )


def counts_from_success(schedule: Schedule) -> bool:
    """Whether the next occurrence is counted from the end of a run, not told by the clock.

    >>> counts_from_success(every(minutes=5))
    True
    """
    return isinstance(schedule, Every) and not schedule.fixed_rate
