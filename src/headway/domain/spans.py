"""Spans of time that things are counted by."""

from datetime import UTC, datetime, timedelta

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def floored(moment: datetime, step: timedelta) -> datetime:
    """The beginning of the span of length *step* that *moment* lies in.

    >>> floored(datetime(2030, 1, 1, 12, 34, 56, tzinfo=UTC), HOUR).minute
    0
    """
    return moment - (moment - _BEGINNING) % step
