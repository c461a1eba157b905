"""Moments and durations as people read them."""

from datetime import UTC, datetime, timedelta

UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def exact(moment: datetime) -> str:
    """A moment to the second, in UTC.

    >>> exact(datetime(2026, 1, 5, 13, tzinfo=UTC))
    '2026-01-05 13:00:00Z'
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def relative(moment: datetime, now: datetime) -> str:
    """A moment as seen from *now*.

    >>> noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    >>> relative(noon - timedelta(minutes=3), noon), relative(noon + timedelta(days=2), noon)
    ('3 min ago', 'in 2 d')
    """
    if abs(moment - now) < timedelta(seconds=1):
        return "now"
    told = duration(abs(moment - now), roughly=True)
    return f"{told} ago" if moment < now else f"in {told}"


def duration(span: timedelta, *, roughly: bool = False) -> str:
    """How long something took.

    >>> duration(timedelta(milliseconds=250)), duration(timedelta(seconds=3723))
    ('0.25 s', '1 h 2 min')
    >>> duration(timedelta(seconds=3723), roughly=True)
    '1 h'
    """
    seconds = span.total_seconds()
    if seconds < 60:
        return f"{seconds:.0f} s" if roughly or seconds >= 10 else f"{seconds:.2f} s"
    size, unit = next(one for one in UNITS if seconds >= one[0])
    whole = int(seconds // size)
    finer = UNITS[UNITS.index((size, unit)) + 1]
    rest = int((seconds - whole * size) // finer[0])
    return f"{whole} {unit}" + (f" {rest} {finer[1]}" if rest and not roughly else "")
