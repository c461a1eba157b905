"""How users write cron schedules: an expression, or a factory for the common ones."""

from collections.abc import Callable
from typing import Generic, TypeVar

from headway.domain.schedule_rules import check_weekday, check_whole

Made = TypeVar("Made")

_MINUTES, _HOURS, _DAYS = range(60), range(24), range(1, 32)


class CronFactory(Generic[Made]):
    """Make cron schedules: ``cron(expression)``, or ``cron.hourly``, ``.daily``, ``.weekly``, …

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

    def hourly(self, minute: int = 0, *, tz: str = "UTC") -> Made:
        """Return a schedule for this minute of every hour.

        >>> from headway import cron
        >>> cron.hourly(minute=15) == cron("15 * * * *")
        True
        """
        check_whole("minute", minute, _MINUTES, "cron.hourly(minute=15)")
        return self._make(f"{minute} * * * *", tz)

    def daily(self, hour: int = 0, minute: int = 0, *, tz: str = "UTC") -> Made:
        """Return a schedule for this time of every day.

        >>> from headway import cron
        >>> cron.daily(hour=9, minute=30) == cron("30 9 * * *")
        True
        """
        return self._make(_clock(hour, minute, "cron.daily(hour=9, minute=30)") + " * * *", tz)

    def weekly(self, day: str | int, hour: int = 0, minute: int = 0, *, tz: str = "UTC") -> Made:
        """Return a schedule for one day of the week: a name, or 0 (Sunday) to 6.

        >>> from headway import cron
        >>> cron.weekly("monday", hour=9) == cron("0 9 * * 1")
        True
        """
        example = 'cron.weekly("monday", hour=9)'
        number = check_weekday(day, example)
        return self._make(f"{_clock(hour, minute, example)} * * {number}", tz)

    def monthly(self, day: int = 1, hour: int = 0, minute: int = 0, *, tz: str = "UTC") -> Made:
        """Return a schedule for one day of the month; months without that day are passed over.

        >>> from headway import cron
        >>> cron.monthly(day=15, hour=9) == cron("0 9 15 * *")
        True
        """
        example = "cron.monthly(day=15, hour=9)"
        check_whole("day", day, _DAYS, example)
        return self._make(f"{_clock(hour, minute, example)} {day} * *", tz)


def _clock(hour: int, minute: int, example: str) -> str:
    check_whole("hour", hour, _HOURS, example)
    check_whole("minute", minute, _MINUTES, example)
    return f"{minute} {hour}"
