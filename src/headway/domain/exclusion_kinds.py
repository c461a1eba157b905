"""The kinds of time a manifest may be told to keep out of, each on a bare wall clock.

A kind knows two things: whether it covers a time the clock shows, and the whole span around that
time that it covers. :mod:`headway.domain.exclusions` turns spans into instants of a zone.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from typing import ClassVar

from headway.domain.holiday_calendar import is_holiday
from headway.domain.schedule_rules import refused, weekday_name

DAY = timedelta(days=1)
MOST_DATES = 1000
LONGEST_RANGE = timedelta(days=3653)
_FIRST_YEAR, _LAST_YEAR = 1970, 9998

_DAYS = 'exclude.days("sat", "sun")'
_DATES = "exclude.dates(date(2030, 12, 24))"
_BETWEEN = "exclude.between(date(2030, 12, 24), date(2031, 1, 1))"
_WINDOW = 'exclude.window("22:00", "06:00")'
_CLOCK = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?", re.ASCII)


class Then(StrEnum):
    """What becomes of an occurrence inside an exclusion.

    >>> Then("defer") is Then.DEFER
    True
    """

    SKIP = "skip"
    DEFER = "defer"


@dataclass(frozen=True)
class Exclusion(ABC):
    """A time to keep out of, of one of the kinds below, and what becomes of occurrences in it.

    >>> Window(time(22), time(6), then=Then.DEFER).then.value
    'defer'
    """

    then: Then = field(default=Then.SKIP, kw_only=True)
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "then", check_then(self.then))

    @abstractmethod
    def covers(self, wall: datetime) -> bool:
        """Return whether the time *wall* on the clock is excluded."""

    @abstractmethod
    def span(self, wall: datetime) -> tuple[datetime, datetime]:
        """Return start and end, the latter exclusive, of what is excluded around *wall*."""

    @abstractmethod
    def describe(self) -> str:
        """Return the excluded time in words."""


class _WholeDays(Exclusion):
    @abstractmethod
    def covers_day(self, day: date) -> bool:
        """Return whether *day* is excluded."""

    def covers(self, wall: datetime) -> bool:
        return self.covers_day(wall.date())

    def span(self, wall: datetime) -> tuple[datetime, datetime]:
        first = last = wall.date()
        while self.covers_day(first - DAY):
            first -= DAY
        while self.covers_day(last + DAY):
            last += DAY
        return _midnight(first), _midnight(last + DAY)


@dataclass(frozen=True)
class Days(_WholeDays):
    """Days of the week, Sunday being 0; not all seven.

    >>> Days(frozenset({6, 0})).describe()
    'on sun, sat'
    """

    days: frozenset[int]
    kind: ClassVar[str] = "days"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.days:
            raise refused("days", (), "must name at least one day", _DAYS)
        if len(self.days) > 6:
            raise refused("days", sorted(self.days), "would never run: all seven", _DAYS)

    def covers_day(self, day: date) -> bool:
        return day.isoweekday() % 7 in self.days

    def describe(self) -> str:
        return "on " + ", ".join(weekday_name(number) for number in sorted(self.days))


@dataclass(frozen=True)
class Dates(_WholeDays):
    """Single dates, at most 1000.

    >>> Dates(frozenset({date(2030, 12, 24)})).describe()
    'on 2030-12-24'
    """

    dates: frozenset[date]
    kind: ClassVar[str] = "dates"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.dates) <= MOST_DATES:
            rule = f"must be 1 to {MOST_DATES} dates"
            raise refused("number of dates", len(self.dates), rule, _DATES)
        for day in self.dates:
            check_date(day, _DATES)

    def covers_day(self, day: date) -> bool:
        return day in self.dates

    def describe(self) -> str:
        first, *others = sorted(self.dates)
        more = f" and {len(others)} other date{'s' if len(others) > 1 else ''}" if others else ""
        return f"on {first}{more}"


@dataclass(frozen=True)
class Between(_WholeDays):
    """All dates from *start* to *end*, both included; at most 10 years.

    >>> Between(date(2030, 12, 24), date(2031, 1, 1)).describe()
    'from 2030-12-24 to 2031-01-01'
    """

    start: date
    end: date
    kind: ClassVar[str] = "between"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_date(self.start, _BETWEEN)
        check_date(self.end, _BETWEEN)
        if self.end < self.start:
            raise refused("end", self.end, f"must not be before the start {self.start}", _BETWEEN)
        if self.end - self.start > LONGEST_RANGE:
            raise refused("end", self.end, "must be at most 10 years after the start", _BETWEEN)

    def covers_day(self, day: date) -> bool:
        return self.start <= day <= self.end

    def span(self, wall: datetime) -> tuple[datetime, datetime]:
        return _midnight(self.start), _midnight(self.end + DAY)

    def describe(self) -> str:
        return f"from {self.start} to {self.end}"


@dataclass(frozen=True)
class Holidays(_WholeDays):
    """Public holidays of a country, or of one of its subdivisions; needs the extra ``holidays``.

    >>> Holidays("DE", "BY").describe()
    'on public holidays of DE-BY'
    """

    country: str
    subdivision: str | None = None
    kind: ClassVar[str] = "holidays"

    def __post_init__(self) -> None:
        super().__post_init__()
        example = 'exclude.holidays("DE", subdivision="BY")'
        for name, value in (("country", self.country), ("subdivision", self.subdivision or "-")):
            if not isinstance(value, str) or not value.isascii() or not 1 <= len(value) <= 64:
                raise refused(name, value, "must be a short code", example)

    def covers_day(self, day: date) -> bool:
        return is_holiday(self.country, self.subdivision, day)

    def describe(self) -> str:
        place = f"{self.country}-{self.subdivision}" if self.subdivision else self.country
        return f"on public holidays of {place}"


@dataclass(frozen=True)
class Window(Exclusion):
    """A time of every day, from *start* up to but without *end*; across midnight if end < start.

    >>> Window(time(22), time(6)).covers(datetime(2025, 1, 1, 5, 59))
    True
    """

    start: time
    end: time
    kind: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start == self.end:
            rule = "must differ from the start; the whole day would never run"
            raise refused("end", clock_text(self.end), rule, _WINDOW)

    def covers(self, wall: datetime) -> bool:
        shown = wall.time()
        if self.start < self.end:
            return self.start <= shown < self.end
        return shown >= self.start or shown < self.end

    def span(self, wall: datetime) -> tuple[datetime, datetime]:
        first = last = wall.date()
        if self.end < self.start:
            first, last = (first, last + DAY) if wall.time() >= self.start else (first - DAY, last)
        return datetime.combine(first, self.start), datetime.combine(last, self.end)

    def describe(self) -> str:
        return f"between {clock_text(self.start)} and {clock_text(self.end)}"


def check_date(day: date, example: str) -> date:
    """Return *day* if it is a date, not a datetime, of a year from 1970 to 9998.

    >>> check_date(date(2030, 12, 24), "exclude.dates(date(2030, 12, 24))").year
    2030
    """
    if isinstance(day, datetime) or not isinstance(day, date):
        raise refused("date", day, "must be a date", example)
    if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        raise refused("date", day, "must lie between 1970 and 9998", example)
    return day


def check_then(then: str) -> Then:
    """Return *then* as one of the two things that can become of an occurrence.

    >>> check_then("defer") is Then.DEFER
    True
    """
    if not isinstance(then, str) or then not in tuple(Then):
        rule = "must be 'skip' or 'defer'"
        raise refused("then", then, rule, 'exclude.weekends(then="defer")')
    return Then(then)


def parse_clock(name: str, value: str | time) -> time:
    """Return a time of day given as such or as text.

    >>> parse_clock("start", "22:00")
    datetime.time(22, 0)
    """
    if isinstance(value, time) and value.tzinfo is None and not value.microsecond:
        return value
    if isinstance(value, str) and _CLOCK.fullmatch(value):
        return time.fromisoformat(value)
    raise refused(name, value, "must be a time of day as HH:MM or HH:MM:SS", _WINDOW)


def clock_text(clock: time) -> str:
    """Return *clock* as HH:MM, or HH:MM:SS when it has seconds.

    >>> clock_text(time(6)), clock_text(time(6, 0, 30))
    ('06:00', '06:00:30')
    """
    return clock.isoformat("seconds" if clock.second else "minutes")


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())
