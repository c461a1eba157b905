"""What a schedule must look like, checked when it is built; each refusal is one line."""

import difflib
import math
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from headway.domain.text import shown
from headway.domain.wall_clock import nearest_zone, next_occurrence, zone
from headway.errors import ScheduleError

SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_INTERVAL = timedelta(days=3653)
LONGEST_EXPRESSION = 256
EARLIEST_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_ONCE = datetime(9999, 1, 1, tzinfo=UTC)

# Only where the search for a first occurrence starts; cronsim looks 50 years ahead.
SEARCH_FROM = datetime(2024, 1, 1, tzinfo=UTC)

_INTERVAL_RANGE = "must be from 1 second to 10 years"
_ONCE_RANGE = "must lie between 1970 and 9998"
_TEXT_RULES = (
    (lambda text: isinstance(text, str), "must be text"),
    (lambda text: len(text) <= LONGEST_EXPRESSION, "must have at most 256 characters"),
    (lambda text: text.isascii(), "must be plain ASCII"),
    (lambda text: text.replace("\t", " ").isprintable(), "must be one line without control codes"),
)
_FIELDS = "must have 5 fields, or 6 with seconds first"
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def check_interval(interval: timedelta) -> None:
    """Refuse what is not a timedelta of whole seconds between 1 second and 10 years.

    >>> check_interval(timedelta(minutes=5))
    """
    if not isinstance(interval, timedelta):
        raise refused_interval("interval", interval, "must be a timedelta")
    if not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
        raise refused_interval("interval", interval, _INTERVAL_RANGE)
    if interval.microseconds:
        raise refused_interval("interval", interval, "must be whole seconds")


def added_up(amounts: dict[str, float]) -> timedelta:
    """Return the timedelta of *amounts* by unit, refusing what is no finite number.

    >>> added_up({"hours": 1, "minutes": 30})
    datetime.timedelta(seconds=5400)
    """
    for unit, amount in amounts.items():
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise refused_interval(unit, amount, "must be a number")
        if isinstance(amount, float) and not math.isfinite(amount):
            raise refused_interval(unit, amount, "must be a finite number")
    try:
        return timedelta(**amounts)
    except OverflowError:
        unit, amount = max(amounts.items(), key=lambda item: abs(item[1]))
        raise refused_interval(unit, amount, _INTERVAL_RANGE) from None


def check_once(at: datetime) -> datetime:
    """Return *at* in UTC, refusing naive and absurdly distant datetimes.

    >>> check_once(datetime(2025, 1, 1, tzinfo=UTC)).year
    2025
    """
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise refused("at", at, "must be a datetime with a timezone", _ONCE_EXAMPLE)
    try:
        instant = at.astimezone(UTC)
    except OverflowError:
        instant = LATEST_ONCE
    if not EARLIEST_ONCE <= instant < LATEST_ONCE:
        raise refused("at", at, _ONCE_RANGE, _ONCE_EXAMPLE)
    return instant


def check_cron(expression: str, tz: str) -> str:
    """Return *expression* with single spaces and macros expanded; refuse what never occurs.

    >>> check_cron("0  9 * * MON", "Europe/Berlin"), check_cron("@daily", "UTC")
    ('0 9 * * MON', '0 0 * * *')
    """
    for holds, rule in _TEXT_RULES:
        if not holds(expression):
            raise refused("cron expression", expression, rule, _CRON_EXAMPLE)
    expression = " ".join(_expanded(expression).split())
    if len(expression.split()) not in (5, 6):
        raise refused("cron expression", expression, _FIELDS, _CRON_EXAMPLE)
    check_zone(tz)
    if problem := _expression_problem(expression, tz):
        raise refused("cron expression", expression, problem, _CRON_EXAMPLE)
    return expression


def refused(field: str, value: object, rule: str, example: str) -> ScheduleError:
    """Return the error that refuses *value*: what it is, the rule it breaks, what to write.

    >>> str(refused("day", 7, "must be from 0 to 6", "cron.weekly('mon')"))
    "day 7 must be from 0 to 6, for example cron.weekly('mon')"
    """
    return ScheduleError(f"{field} {shown(value)} {rule}, for example {example}")


def refused_interval(field: str, value: object, rule: str) -> ScheduleError:
    """Return the error that refuses an interval.

    >>> str(refused_interval("hours", "5", "must be a number"))
    "hours '5' must be a number, for example every(minutes=5)"
    """
    return refused(field, value, rule, "every(minutes=5)")


def aware_utc(moment: datetime) -> datetime:
    """Return *moment* in UTC, refusing a naive datetime.

    >>> aware_utc(datetime(2025, 1, 1, tzinfo=UTC)).hour
    0
    """
    if moment.tzinfo is UTC:
        return moment
    if moment.utcoffset() is None:
        raise refused("moment", moment, "must have a timezone", "datetime.now(UTC)")
    return moment.astimezone(UTC)


_CRON_EXAMPLE = 'cron("30 9 * * MON-FRI", tz="Europe/Berlin")'
_ONCE_EXAMPLE = "once(datetime(2030, 1, 31, 9, 30, tzinfo=UTC))"


def _expanded(expression: str) -> str:
    name = expression.strip().lower()
    if not name.startswith("@"):
        return expression
    if name not in _MACROS:
        near = difflib.get_close_matches(name, _MACROS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        rule = f"must be a known macro{hint}: {', '.join(_MACROS)}"
        raise refused("cron expression", expression, rule, 'cron("@daily")')
    return _MACROS[name]


def check_whole(field: str, value: int, span: range, example: str) -> int:
    """Return *value* if it is a whole number in *span*.

    >>> check_whole("hour", 9, range(24), "cron.daily(hour=9)")
    9
    """
    if isinstance(value, bool) or not isinstance(value, int) or value not in span:
        rule = f"must be a whole number from {span.start} to {span.stop - 1}"
        raise refused(field, value, rule, example)
    return value


def check_weekday(value: str | int, example: str) -> int:
    """Return the number of a weekday given as such (Sunday = 0) or by name, long or short.

    >>> check_weekday("Sat", "exclude.days('sat')"), check_weekday(1, "exclude.days('sat')")
    (6, 1)
    """
    if isinstance(value, str):
        name = value.strip().lower()
        for number, weekday in enumerate(_WEEKDAYS):
            if name in (weekday, weekday[:3]):
                return number
    elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 6:
        return value
    raise refused("day", value, "must be a weekday by name, or 0 (Sunday) to 6", example)


def weekday_name(number: int) -> str:
    """Return the short name of weekday *number*, Sunday being 0.

    >>> weekday_name(6)
    'sat'
    """
    return _WEEKDAYS[number][:3]


def check_zone(tz: str) -> None:
    """Refuse what is not the name of an IANA zone, suggesting the nearest.

    >>> check_zone("Europe/Berlin")
    """
    if isinstance(tz, str) and zone(tz) is not None:
        return
    near = nearest_zone(tz) if isinstance(tz, str) else None
    hint = f" (did you mean {near!r}?)" if near else ""
    raise refused("time zone", tz, f"must be an IANA zone name{hint}", "'Europe/Berlin'")


@lru_cache(maxsize=4096)
def _expression_problem(expression: str, tz: str) -> str | None:
    """The rule that *expression* breaks; cached because the store rebuilds schedules often."""
    try:
        CronSim(expression, SEARCH_FROM)
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        return f"must have a {field} field that can be met"
    if next_occurrence(expression, zone(tz) or UTC, SEARCH_FROM) is None:
        return "must occur at some time; this one never does"
    return None
