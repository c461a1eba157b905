"""How users write cron schedules: an expression, or a factory for the common ones."""

from collections.abc import Callable
from typing import Generic, TypeVar

from headway.domain.schedule_rules import check_weekday, check_whole

Made = TypeVar("Made")

_SECONDS, _MINUTES, _HOURS, _DAYS = range(60), range(60), range(24), range(1, 32)


class CronFactory(Generic[Made]):
    """Make cron schedules: ``cron(expression)``, or ``cron.minutely``, ``.hourly``, ``.daily``, …

    An expression has 5 fields, or 6 with seconds first, or is a macro such as ``@daily``. Times
    are on the wall clock of the IANA zone *tz*.

    >>> from headway import cron
    >>> cron("*/10 * * * *").describe()
    'Every 10th minute of every hour'
    >>> cron.daily(hour=9, tz="Europe/Berlin") == cron("0 9 * * *", "Europe/Berlin")
    True
    """

    def __init__(self, make: Callable[[str, str], Made]) -> None:
        self._make = make

    def __call__(self, expression: str, tz: str = "UTC") -> Made:
        """Return the schedule of *expression*."""
        return self._make(expression, tz)

    def __repr__(self) -> str:
        return "cron"

    def secondly(self, *, tz: str = "UTC") -> Made:
        """Return a schedule for every second.

        >>> from headway import cron
        >>> cron.secondly() == cron("* * * * * *")
        True
        """
        return self._make("* * * * * *", tz)

    def minutely(self, second: int = 0, *, tz: str = "UTC") -> Made:
        """Return a schedule for this second of every minute.

        >>> from headway import cron
        >>> cron.minutely() == cron("* * * * *"), cron.minutely(second=30) == cron("30 * * * * *")
        (True, True)
        """
        return self._make(_seconds(second, "cron.minutely(second=30)") + "* * * * *", tz)

    def hourly(self, minute: int = 0, second: int = 0, *, tz: str = "UTC") -> Made:
        """Return a schedule for this minute of every hour.

        >>> from headway import cron
        >>> cron.hourly(minute=15) == cron("15 * * * *")
        True
        """
        example = "cron.hourly(minute=15)"
        check_whole("minute", minute, _MINUTES, example)
        return self._make(f"{_seconds(second, example)}{minute} * * * *", tz)

    def daily(self, hour: int = 0, minute: int = 0, second: int = 0, *, tz: str = "UTC") -> Made:
        """Return a schedule for this time of every day.

        >>> from headway import cron
        >>> cron.daily(hour=9, minute=30) == cron("30 9 * * *")
        True
        """
        clock = _clock(hour, minute, second, "cron.daily(hour=9, minute=30)")
        return self._make(f"{clock} * * *", tz)

    def weekly(
        self, day: str | int, hour: int = 0, minute: int = 0, second: int = 0, *, tz: str = "UTC"
    ) -> Made:
        """Return a schedule for one day of the week: a name, or 0 (Sunday) to 6.

        >>> from headway import cron
        >>> cron.weekly("monday", hour=9) == cron("0 9 * * 1")
        True
        """
        example = 'cron.weekly("monday", hour=9)'
        number = check_weekday(day, example)
        return self._make(f"{_clock(hour, minute, second, example)} * * {number}", tz)

    def monthly(
        self, day: int = 1, hour: int = 0, minute: int = 0, second: int = 0, *, tz: str = "UTC"
    ) -> Made:
        """Return a schedule for one day of the month; months without that day are passed over.

        >>> from headway import cron
        >>> cron.monthly(day=15, hour=9) == cron("0 9 15 * *")
        True
        """
        example = "cron.monthly(day=15, hour=9)"
        check_whole("day", day, _DAYS, example)
        return self._make(f"{_clock(hour, minute, second, example)} {day} * *", tz)


def _clock(hour: int, minute: int, second: int, example: str) -> str:
    """The fields of a time of day: second (if it is not 0), minute, hour."""
    check_whole("hour", hour, _HOURS, example)
    check_whole("minute", minute, _MINUTES, example)
    return f"{_seconds(second, example)}{minute} {hour}"


def _seconds(second: int, example: str) -> str:
    """The field of seconds, with the space behind it; 0 needs none.

    So a schedule at second 0 is equal to, and stored as, the expression with five fields.
    """
    check_whole("second", second, _SECONDS, example)
    return f"{second} " if second else ""
