"""What becomes of a queue entry that a task server or a worker would not take. Pure."""

from datetime import timedelta

FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=1)

_DOUBLINGS = 10  # more of them end at the longest pause anyway


def pause_after(refusals: int) -> timedelta:
    """How long an entry is left alone that was refused so often.

    >>> [pause_after(count).seconds for count in range(1, 7)]
    [5, 10, 20, 40, 60, 60]
    """
    return min(FIRST_PAUSE * (1 << min(refusals - 1, _DOUBLINGS)), LONGEST_PAUSE)


def waited(refusals: int) -> timedelta:
    """How long an entry was left alone until it was refused for the last of so many times.

    >>> waited(1), waited(3)
    (datetime.timedelta(0), datetime.timedelta(seconds=15))
    """
    return sum((pause_after(count) for count in range(1, refusals)), timedelta())


def is_hopeless(refusals: int, limit: int, patience: timedelta = timedelta()) -> bool:
    """Whether an entry that was refused so often is to fail: *limit* times at least, and for as
    long as somebody who takes it may still come, which is the *patience*.

    >>> is_hopeless(5, limit=5), is_hopeless(5, limit=5, patience=timedelta(minutes=20))
    (True, False)
    """
    return refusals >= limit and waited(refusals) >= patience
