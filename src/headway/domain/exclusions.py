"""Times at which nothing runs: what users write, and where it ends on the clock of a zone.

Everything is compared on the wall clock. An occurrence inside an exclusion is skipped or deferred
to the exclusion's end; where one that skips and one that defers overlap, skipping wins.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from headway.domain.exclusion_json import exclusion_text
from headway.domain.exclusion_kinds import (
    DAY,
    Between,
    Dates,
    Days,
    Exclusion,
    Holidays,
    Then,
    Window,
    check_date,
    check_then,
    parse_clock,
)
from headway.domain.holiday_calendar import check_country
from headway.domain.schedule_rules import aware_utc, check_weekday, refused
from headway.domain.wall_clock import (
    first_showing,
    last_showing,
    turn_between,
    wall_time,
    zone,
)

MOST_EXCLUSIONS = 50

# Spans passed before a search gives up: a little more than the days of a year.
SPANS_SEARCHED = 370

_INSTANT = timedelta.resolution
_LIST_EXAMPLE = '[exclude.weekends(), exclude.window("22:00", "06:00")]'
_DATES_EXAMPLE = "exclude.dates(date(2030, 12, 24))"


class Exclude:
    """Say when a manifest must not run; each takes ``then="skip"`` (the default) or ``"defer"``.

    >>> exclude.window("22:00", "06:00", then="defer").describe()
    'between 22:00 and 06:00'
    """

    def __repr__(self) -> str:
        return "exclude"

    def weekends(self, *, then: str = Then.SKIP) -> Days:
        """Exclude Saturdays and Sundays.

        >>> exclude.weekends() == exclude.days("sat", "sun")
        True
        """
        return self.days("sat", "sun", then=then)

    def days(self, *days: str | int, then: str = Then.SKIP) -> Days:
        """Exclude days of the week: names, or numbers from 0 (Sunday) to 6.

        >>> exclude.days("monday", 0).describe()
        'on sun, mon'
        """
        numbers = frozenset(check_weekday(day, 'exclude.days("sat", "sun")') for day in days)
        return Days(numbers, then=check_then(then))

    def dates(self, *dates: date, then: str = Then.SKIP) -> Dates:
        """Exclude single dates.

        >>> exclude.dates(date(2030, 12, 24)).describe()
        'on 2030-12-24'
        """
        return Dates(
            frozenset(check_date(day, _DATES_EXAMPLE) for day in dates), then=check_then(then)
        )

    def between(self, start: date, end: date, *, then: str = Then.SKIP) -> Between:
        """Exclude all dates from *start* to *end*, both included.

        >>> exclude.between(date(2030, 12, 24), date(2031, 1, 1)).describe()
        'from 2030-12-24 to 2031-01-01'
        """
        return Between(start, end, then=check_then(then))

    def window(self, start: str | time, end: str | time, *, then: str = Then.SKIP) -> Window:
        """Exclude a time of every day, *end* not included; it may cross midnight.

        >>> exclude.window("22:00", "06:00").covers(datetime(2025, 1, 1, 23))
        True
        """
        first, last = parse_clock("start", start), parse_clock("end", end)
        return Window(first, last, then=check_then(then))

    def holidays(
        self, country: str, subdivision: str | None = None, *, then: str = Then.SKIP
    ) -> Holidays:
        """Exclude public holidays of a country, by its code; needs the extra ``holidays``.

        >>> Holidays("DE").describe()
        'on public holidays of DE'
        """
        made = Holidays(country, subdivision, then=check_then(then))
        check_country(country, subdivision)
        return made


exclude = Exclude()
"""See :class:`Exclude`."""


def check_exclusions(exclusions: Iterable[Exclusion]) -> tuple[Exclusion, ...]:
    """Return *exclusions* once each, in a fixed order; refuse a set that leaves no time to run.

    >>> len(check_exclusions([exclude.weekends(), exclude.days(0, 6)]))
    1
    """
    if isinstance(exclusions, Exclusion) or not isinstance(exclusions, Iterable):
        raise refused("exclusions", exclusions, "must be a list", _LIST_EXAMPLE)
    given = list(exclusions)
    for one in given:
        if not isinstance(one, Exclusion):
            raise refused("exclusion", one, "must come from exclude", _LIST_EXAMPLE)
    if len(given) > MOST_EXCLUSIONS:
        rule = f"must be at most {MOST_EXCLUSIONS}"
        raise refused("number of exclusions", len(given), rule, _LIST_EXAMPLE)
    if _leave_no_time(given):
        words = "; ".join(one.describe() for one in given)
        raise refused("exclusions", words, "would never run: no time is left", _LIST_EXAMPLE)
    return tuple(sorted(set(given), key=exclusion_text))


def excluded(exclusions: Sequence[Exclusion], moment: datetime, tz: str) -> Exclusion | None:
    """Return the exclusion that decides about *moment* on the clock of *tz*: one that skips, first.

    >>> saturday = datetime(2025, 1, 4, 12, tzinfo=UTC)
    >>> excluded([exclude.weekends()], saturday, "UTC").describe()
    'on sun, sat'
    """
    if not exclusions:
        return None
    wall = wall_time(aware_utc(moment), _zone(tz))
    covering = [one for one in exclusions if one.covers(wall)]
    return next(
        (one for one in covering if one.then is Then.SKIP), covering[0] if covering else None
    )


def free_from(exclusions: Sequence[Exclusion], moment: datetime, tz: str) -> datetime | None:
    """Return the first instant from *moment* on that no exclusion covers; None when there is none.

    >>> free_from([exclude.weekends()], datetime(2025, 1, 4, 12, tzinfo=UTC), "UTC").isoformat()
    '2025-01-06T00:00:00+00:00'
    """
    moment = aware_utc(moment)
    if not exclusions:
        return moment
    try:
        for _ in range(SPANS_SEARCHED):
            found = excluded(exclusions, moment, tz)
            if found is None:
                return moment
            moment = _end(found, moment, _zone(tz))
    except OverflowError:
        pass
    return None


def excluded_since(exclusion: Exclusion, moment: datetime, tz: str) -> datetime:
    """Return when *exclusion*, which covers *moment*, began to do so without a break.

    >>> excluded_since(exclude.weekends(), datetime(2025, 1, 5, 12, tzinfo=UTC), "UTC").day
    4
    """
    clock, began = _zone(tz), _start(exclusion, aware_utc(moment), _zone(tz))
    while exclusion.covers(wall_time(began - _INSTANT, clock)):
        began = _start(exclusion, began - _INSTANT, clock)
    return began


def _start(exclusion: Exclusion, moment: datetime, clock: tzinfo) -> datetime:
    """The last instant up to *moment* before which *exclusion* may not have covered."""
    start, _ = exclusion.span(wall_time(moment, clock))
    began = min(last_showing(start, clock, moment), moment)
    turn = turn_between(max(began, moment - DAY), moment, clock)
    # Before a turn the clock may have shown, for a while, what is not excluded.
    if turn is not None and not exclusion.covers(wall_time(turn - _INSTANT, clock)):
        return turn
    return began


def _end(exclusion: Exclusion, moment: datetime, clock: tzinfo) -> datetime:
    """The first instant after *moment* at which *exclusion* may cover no more."""
    _, stop = exclusion.span(wall_time(moment, clock))
    end = max(first_showing(stop, clock, moment), moment + _INSTANT)
    turn = turn_between(moment, min(end, moment + DAY), clock)
    # A clock that is put back may leave what it had entered.
    if turn is not None and not exclusion.covers(wall_time(turn, clock)):
        return turn
    return end


def _leave_no_time(exclusions: Sequence[Exclusion]) -> bool:
    """Dates come to an end; weekdays and windows do not, and may add up to all time there is."""
    weekdays = [one.days for one in exclusions if isinstance(one, Days)]
    if len(frozenset().union(*weekdays)) == 7:
        return True
    windows = [one for one in exclusions if isinstance(one, Window)]
    ends = [datetime.combine(date(2024, 1, 1), one.end) for one in windows]
    # If some time of day is free, then so is the end of a window.
    return bool(ends) and all(any(one.covers(end) for one in windows) for end in ends)


def _zone(tz: str) -> tzinfo:
    return zone(tz) or UTC
