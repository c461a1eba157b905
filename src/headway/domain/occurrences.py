"""The occurrences of one manifest: its schedule without what is skipped, and when each is due.

Occurrences are nominal instants. One that an exclusion defers starts when the exclusion ends; the
manifest's jitter comes on top and never carries a run into an exclusion.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice

from headway.domain.exclusion_kinds import Exclusion, Then
from headway.domain.exclusions import SPANS_SEARCHED, excluded, excluded_since, free_from
from headway.domain.jitter import jitter
from headway.domain.schedule import Every, Schedule
from headway.domain.schedule_rules import aware_utc

# More than this are "many": walking through all of them would hold up whoever decides.
COUNTED_AT_MOST = 25

_INSTANT = timedelta.resolution
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Occurrences:
    """A schedule seen through its exclusions (on the clock of *tz*) and its jitter.

    >>> from datetime import UTC
    >>> from headway.domain.exclusions import exclude
    >>> from headway.domain.schedule import cron
    >>> weekdays = Occurrences(cron.daily(hour=9), (exclude.weekends(),))
    >>> weekdays.first(datetime(2025, 1, 3, 12, tzinfo=UTC)).isoformat()
    '2025-01-06T09:00:00+00:00'
    """

    schedule: Schedule
    exclusions: Sequence[Exclusion] = ()
    tz: str = "UTC"
    variance: timedelta = timedelta(0)
    key: str = ""

    def after(self, since: datetime) -> "Occurrences":
        """Return these occurrences, made to defer if skipping would leave none after *since*.

        An interval has no time of its own: every day from 23:00 on, all of its points could lie
        in the same nightly window for ever. A cron expression like that is refused when declared.
        """
        if not self.exclusions:
            return self
        if isinstance(self.schedule, Every) and self._skipping and self.first(since) is None:
            deferring = tuple(replace(one, then=Then.DEFER) for one in self.exclusions)
            return replace(self, exclusions=deferring)
        return self

    def first(self, since: datetime) -> datetime | None:
        """Return the first occurrence later than *since* that is not skipped."""
        found = self.schedule.next_after(since)
        if not self.exclusions:
            return found
        skipping = self._skipping
        if not skipping:
            return found
        for _ in range(SPANS_SEARCHED):
            if found is None:
                return None
            free = free_from(skipping, found, self.tz)
            if free is None or free == found:
                return free
            found = self._from(since, free)
        return None

    def due_time(self, nominal: datetime) -> datetime | None:
        """Return when the occurrence *nominal* is due: never earlier, never inside an exclusion."""
        if not self.exclusions and not self.variance:
            return aware_utc(nominal)
        start = free_from(self.exclusions, nominal, self.tz)
        if start is None:
            return None
        try:
            seconds = jitter(self.key, start, self.variance) // _SECOND
            while seconds and excluded(self.exclusions, start + seconds * _SECOND, self.tz):
                seconds //= 2
            return start + seconds * _SECOND
        except OverflowError:
            return None

    def newest(self, since: datetime, now: datetime) -> datetime | None:
        """Return the newest occurrence in (*since*, *now*] that has come due.

        Where the variance is many times the gap between occurrences, the search ends early with
        the newest of all, which then stands for those that it overtakes.
        """
        if not self.exclusions and not self.variance:
            return self.schedule.latest(since, now)
        newest = None
        for seen, nominal in enumerate(self.backwards(since, now)):
            newest = newest or nominal
            due = self.due_time(nominal)
            if due is not None and due <= now:
                return nominal
            if seen == SPANS_SEARCHED:
                return newest
        return None

    def backwards(self, since: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the occurrences in (*since*, *until*] that run, newest first.

        Of several that are deferred to the same moment only the newest runs.
        """
        position, start, passed = self.schedule.latest(since, until), None, 0
        while position is not None and passed < SPANS_SEARCHED:
            passed += 1
            found = excluded(self.exclusions, position, self.tz)
            if found is None or found.then is Then.DEFER:
                begins = free_from(self.exclusions, position, self.tz)
                if begins != start:
                    yield position
                    start, passed = begins, 0
            edge = position if found is None else excluded_since(found, position, self.tz)
            position = self.schedule.latest(since, edge - _INSTANT)

    def count(self, since: datetime, until: datetime) -> int:
        """Return how many occurrences in (*since*, *until*] are not skipped, walking up to 25."""
        if isinstance(self.schedule, Every) and not (self.exclusions and self._skipping):
            return (until - since) // self.schedule.interval
        return sum(1 for _ in islice(self._forwards(since, until), COUNTED_AT_MOST))

    def skipped_before(self, since: datetime, first: datetime, now: datetime) -> datetime | None:
        """Return the newest skipped occurrence up to *now*, *first* being the first that is not."""
        if not self.exclusions or not self._skipping or self.schedule.next_after(since) == first:
            return None
        return self.schedule.latest(since, min(now, first - _INSTANT))

    @cached_property
    def _skipping(self) -> list[Exclusion]:
        return [one for one in self.exclusions if one.then is Then.SKIP]

    def _forwards(self, since: datetime, until: datetime) -> Iterator[datetime]:
        found = self.first(since)
        while found is not None and found <= until:
            yield found
            found = self.first(found)

    def _from(self, since: datetime, moment: datetime) -> datetime | None:
        """The first occurrence at *moment* or later, on the grid that starts at *since*."""
        if isinstance(self.schedule, Every):
            steps = -((since - moment) // self.schedule.interval)
            try:
                return since + steps * self.schedule.interval
            except OverflowError:
                return None
        return self.schedule.next_after(moment - _INSTANT)
