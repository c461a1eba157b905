"""Cron expressions on a zone's wall clock, as instants in UTC.

cronsim walks the wall clock; this module decides what happens where that clock is turned.
Debian's rule: a job at fixed times (neither minute nor hour starts with ``*``) whose time is
skipped runs when the gap ends, and one whose time is repeated runs the first time only. Every
other job follows elapsed time: skipped times do not happen, repeated ones happen twice.

cronsim's own zone handling is not used: version 2.8 loses a day in half-hour zones such as
Australia/Lord_Howe.
"""

import difflib
import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from cronsim import CronSim

SECOND = timedelta(seconds=1)

# As cronsim: an expression without a match for this long is taken to have none.
YEARS_SEARCHED = 50

# Names some systems keep beside the IANA zones; they mean something else on every machine.
_LOCAL_NAMES = frozenset({"localtime", "posixrules", "Factory"})


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo | None:
    """Return the IANA zone called *name*, or None when there is none.

    >>> zone("Europe/Berlin"), zone("Europe/Berln")
    (zoneinfo.ZoneInfo(key='Europe/Berlin'), None)
    """
    if name == "UTC":
        return UTC
    if name in _LOCAL_NAMES or name.startswith(("posix/", "right/")):
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def nearest_zone(name: str) -> str | None:
    """Return the zone name most like *name*, or None when nothing is close.

    >>> nearest_zone("Europe/Berln")
    'Europe/Berlin'
    """
    names = {known.casefold(): known for known in _zone_names()}
    close = difflib.get_close_matches(name[:64].casefold(), names, n=1)
    return names[close[0]] if close else None


def next_occurrence(expression: str, tz: tzinfo, moment: datetime) -> datetime | None:
    """Return the first occurrence strictly after *moment*, in UTC.

    >>> next_occurrence("30 9 * * *", UTC, datetime(2025, 3, 1, 12, tzinfo=UTC))
    datetime.datetime(2025, 3, 2, 9, 30, tzinfo=datetime.timezone.utc)
    """
    try:
        return _next(expression, tz, moment)
    except (OverflowError, ValueError, StopIteration):
        return None


def latest_occurrence(expression: str, tz: tzinfo, moment: datetime) -> datetime | None:
    """Return the last occurrence at or before *moment*, in UTC, searching backwards.

    >>> latest_occurrence("30 9 * * *", UTC, datetime(2025, 3, 1, 12, tzinfo=UTC))
    datetime.datetime(2025, 3, 1, 9, 30, tzinfo=datetime.timezone.utc)
    """
    try:
        return _latest(expression, tz, moment)
    except (OverflowError, ValueError, StopIteration):
        return None


def wall_time(moment: datetime, tz: tzinfo) -> datetime:
    """Return what a clock in *tz* shows at *moment*, as a datetime without zone.

    >>> wall_time(datetime(2025, 7, 1, 10, tzinfo=UTC), zoneinfo.ZoneInfo("Europe/Berlin")).hour
    12
    """
    return _wall(moment, tz)


def first_showing(wall: datetime, tz: tzinfo, after: datetime) -> datetime:
    """Return the first instant later than *after* at which a clock in *tz* shows *wall*.

    A time that the clock skips counts as shown when the gap ends.

    >>> berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    >>> skipped, before = datetime(2025, 3, 30, 2, 30), datetime(2025, 3, 30, tzinfo=UTC)
    >>> first_showing(skipped, berlin, before).astimezone(berlin).isoformat()
    '2025-03-30T03:00:00+02:00'
    """
    shown = _instants(wall, tz) or [_turn(wall, tz)]
    return next((x for x in shown if x > after), shown[-1])


def last_showing(wall: datetime, tz: tzinfo, until: datetime) -> datetime:
    """Return the last instant not later than *until* at which a clock in *tz* shows *wall*.

    A time that the clock skips counts as shown when the gap ends.

    >>> last_showing(datetime(2025, 1, 1, 9), UTC, datetime(2025, 1, 2, tzinfo=UTC)).hour
    9
    """
    shown = _instants(wall, tz) or [_turn(wall, tz)]
    return next((x for x in reversed(shown) if x <= until), shown[0])


def turn_between(start: datetime, end: datetime, tz: tzinfo) -> datetime | None:
    """Return when the clock in *tz* is turned in (*start*, *end*], a span with one turn at most.

    >>> day = datetime(2025, 3, 30, tzinfo=UTC)
    >>> turn_between(day, day + timedelta(days=1), zoneinfo.ZoneInfo("Europe/Berlin")).hour
    1
    """
    if start.astimezone(tz).utcoffset() == end.astimezone(tz).utcoffset():
        return None
    return _turn_within(start.replace(microsecond=0), end.replace(microsecond=0), tz)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones() - _LOCAL_NAMES)


def _next(expression: str, tz: tzinfo, moment: datetime) -> datetime | None:
    wall, repeated = _wall(moment, tz), _is_repeated(moment, tz)
    if tz is UTC:
        return _match_after(expression, wall).replace(tzinfo=UTC)
    if _has_fixed_times(expression):
        if repeated and moment.astimezone(tz).fold:
            wall = _wall(_turn(wall, tz) - SECOND, tz)
        return _first_time(_match_after(expression, wall), tz)
    found = _next_elapsed(expression, tz, wall, moment + timedelta.resolution)
    if repeated and not moment.astimezone(tz).fold:
        # The clock will be put back: what it has already shown will come a second time.
        turn = _turn(wall, tz)
        again = _next_elapsed(expression, tz, _wall(turn, tz) - SECOND, turn)
        return min((x for x in (found, again) if x), default=None)
    return found


def _latest(expression: str, tz: tzinfo, moment: datetime) -> datetime | None:
    wall = _wall(moment, tz)
    if tz is UTC:
        return _match_until(expression, wall).replace(tzinfo=UTC)
    second_time = _is_repeated(moment, tz) and moment.astimezone(tz).fold
    if _has_fixed_times(expression):
        if second_time:
            wall = _wall(_turn(wall, tz) - SECOND, tz)
        return _first_time(_match_until(expression, wall), tz)
    found = _latest_elapsed(expression, tz, wall, moment)
    if second_time:
        before = _turn(wall, tz) - SECOND
        first = _latest_elapsed(expression, tz, _wall(before, tz), before)
        return max((x for x in (found, first) if x), default=None)
    return found


def _next_elapsed(
    expression: str, tz: tzinfo, wall: datetime, earliest: datetime
) -> datetime | None:
    last_year = wall.year + YEARS_SEARCHED
    while True:
        match = _match_after(expression, wall)
        if match.year > last_year:
            return None
        instants = [x for x in _instants(match, tz) if x >= earliest]
        if instants:
            return instants[0]
        skipped = not _instants(match, tz)
        wall = _wall(_turn(match, tz), tz) - SECOND if skipped else match


def _latest_elapsed(
    expression: str, tz: tzinfo, wall: datetime, latest: datetime
) -> datetime | None:
    first_year = wall.year - YEARS_SEARCHED
    while True:
        match = _match_until(expression, wall)
        if match.year < first_year:
            return None
        instants = [x for x in _instants(match, tz) if x <= latest]
        if instants:
            return instants[-1]
        skipped = not _instants(match, tz)
        wall = _wall(_turn(match, tz) - SECOND, tz) if skipped else match - SECOND


def _first_time(match: datetime, tz: tzinfo) -> datetime:
    instants = _instants(match, tz)
    return instants[0] if instants else _turn(match, tz)


def _has_fixed_times(expression: str) -> bool:
    minute, hour = expression.split()[-5:-3]
    return not minute.startswith("*") and not hour.startswith("*")


def _match_after(expression: str, wall: datetime) -> datetime:
    return _match(expression, wall.replace(microsecond=0), backwards=False)


def _match_until(expression: str, wall: datetime) -> datetime:
    # cronsim drops microseconds instead of stepping back, which makes the search inclusive.
    return _match(expression, wall.replace(microsecond=1), backwards=True)


# Many manifests share an expression, and whoever is behind walks the same way again and again.
@lru_cache(maxsize=10_000)
def _match(expression: str, wall: datetime, *, backwards: bool) -> datetime:
    return next(CronSim(expression, wall, reverse=backwards))


def _wall(moment: datetime, tz: tzinfo) -> datetime:
    return moment.astimezone(tz).replace(tzinfo=None, fold=0)


def _readings(wall: datetime, tz: tzinfo) -> list[datetime]:
    """Both ways to read *wall* (PEP 495), earlier first; equal except where the clock is turned."""
    return sorted(wall.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1))


def _instants(wall: datetime, tz: tzinfo) -> list[datetime]:
    """The instants at which the clock shows *wall*: none when skipped, two when repeated."""
    return sorted({x for x in _readings(wall, tz) if _wall(x, tz) == wall})


def _is_repeated(moment: datetime, tz: tzinfo) -> bool:
    local = moment.astimezone(tz)
    return local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset()


def _turn(wall: datetime, tz: tzinfo) -> datetime:
    """The instant at which the clock was turned around a skipped or repeated *wall*."""
    before, after = _readings(wall.replace(microsecond=0), tz)
    return _turn_within(before, after, tz)


def _turn_within(before: datetime, after: datetime, tz: tzinfo) -> datetime:
    offset = before.astimezone(tz).utcoffset()
    while after - before > SECOND:
        middle = before + (after - before) // 2 // SECOND * SECOND
        if middle.astimezone(tz).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after
