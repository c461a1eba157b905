"""Where the queue begins, remembered for a while when finding that out is dear. Pure: no database.

While somebody's snapshot stays open, PostgreSQL keeps every entry that was dispatched since, in
front of all that still wait. A look at the whole queue passes them all; one that goes on from where
the last began does not. What comes in ahead of that in the meantime waits for the next whole look.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from headway.domain.lanes import Lane
from headway.domain.work_queue import WorkQueueEntry, age

# A database that finds the lanes within this time has nothing in their way.
DEAR = timedelta(milliseconds=5)
# How many times as long it is good for. To find the lanes is half of a look, and to count what is
# live takes as long again: so a tenth of the time goes into looking at everything.
WORTH = 20
# However dear it was, nobody waits longer than this for not having been there.
LONGEST = timedelta(seconds=2)


@dataclass
class Front:
    """What the last whole look has found, as long as that is worth remembering.

    ``lanes`` are the first of every group, ``next_at`` is when what is delayed is due, and no
    live execution has an id below ``live_from``. Whoever ``looks_ahead``, because looks were dear
    or nobody knows yet, finds that id before anything else, and passes what was live only once.

    >>> front = Front()
    >>> front.keep([Lane(1, 0, datetime(2030, 1, 1), 7)], None, timedelta(milliseconds=50), 0, 60.0)
    >>> [front.is_good(now) for now in (60.9, 61.1)]
    [True, False]
    """

    lanes: Sequence[Lane] = ()
    next_at: datetime | None = None
    live_from: int = 0
    looks_ahead: bool = True
    _until: float = 0.0

    def is_good(self, now: float) -> bool:
        """Whether one may go on from here at the moment *now*, by the same clock."""
        return bool(self.lanes) and now < self._until

    def keep(
        self,
        lanes: Sequence[Lane],
        next_at: datetime | None,
        took: timedelta,
        oldest: int | None,
        now: float,
    ) -> None:
        """Remember what a whole look has found, if the database *took* so long that it is worth it.

        *oldest* is the oldest live execution, if one lives; *now* is the moment, in seconds of any
        clock.
        """
        self.forget()
        self.looks_ahead = took >= DEAR
        if self.looks_ahead:
            self.lanes, self.next_at, self.live_from = lanes, next_at, oldest or 0
            self._until = now + min(LONGEST, WORTH * took).total_seconds()

    def forget(self) -> None:
        """Have the next look go over everything."""
        self.lanes, self.next_at, self.live_from = (), None, 0

    def go_on(self, found: Iterable[WorkQueueEntry]) -> None:
        """Begin next time with the first of what was *found*, lane by lane."""
        if self.lanes:
            self.lanes = begun_at(self.lanes, found)

    def count_from(self, oldest: int | None) -> None:
        """Count next time from the *oldest* live execution on, if there was one."""
        if self.lanes and oldest is not None:
            self.live_from = oldest


def begun_at(lanes: Sequence[Lane], found: Iterable[WorkQueueEntry]) -> list[Lane]:
    """The same lanes, each beginning with the first of what was *found* in it."""
    firsts: dict[tuple[int | None, int], WorkQueueEntry] = {}
    for one in found:
        place = (one.group_id, one.priority)
        if place not in firsts or age(one) < age(firsts[place]):
            firsts[place] = one
    return [_begun(lane, firsts.get((lane.group_id, lane.priority))) for lane in lanes]


def _begun(lane: Lane, first: WorkQueueEntry | None) -> Lane:
    if first is None:
        return lane
    return replace(lane, created_at=first.created_at, first_id=first.id)
