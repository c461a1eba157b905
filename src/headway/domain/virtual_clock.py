"""A clock that tests move themselves; ``headway.testing`` offers it."""

from datetime import UTC, datetime

from headway.domain.text import shown
from headway.errors import DefinitionError

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


class VirtualClock:
    """A clock that stands still until it is moved; any ``Store(url, clock=...)`` can use it.

    >>> from datetime import timedelta
    >>> clock = VirtualClock(datetime(2026, 1, 5, tzinfo=UTC))
    >>> clock.move_to(clock.now + timedelta(hours=9))
    >>> clock().hour
    9
    """

    def __init__(self, start: datetime = MONDAY) -> None:
        self._now = aware(start)

    @property
    def now(self) -> datetime:
        """The moment this clock shows, in UTC."""
        return self._now

    def __call__(self) -> datetime:
        return self._now

    def move_to(self, moment: datetime) -> None:
        """Show *moment* from now on; a clock never goes back.

        >>> VirtualClock().move_to(datetime(2025, 1, 1, tzinfo=UTC))
        Traceback (most recent call last):
        headway.errors.DefinitionError: the clock shows 2026-01-05 00:00:00+00:00 and cannot go ...
        """
        moment = aware(moment)
        if moment < self._now:
            raise DefinitionError(f"the clock shows {self._now} and cannot go back to {moment}")
        self._now = moment


def aware(moment: datetime) -> datetime:
    """*moment* in UTC; one that says no zone is refused, and so is anything else.

    >>> aware(datetime(2026, 1, 5, tzinfo=UTC)).hour
    0
    """
    if not isinstance(moment, datetime):
        raise DefinitionError(f"{shown(moment)} is not a moment; write datetime(..., tzinfo=UTC)")
    if moment.tzinfo is None:
        raise DefinitionError(f"{moment!r} has no time zone; write datetime(..., tzinfo=UTC)")
    return moment.astimezone(UTC)
