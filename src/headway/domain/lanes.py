"""The first of many ordered lanes: read from each no more than it takes. Pure: no database.

A lane is the queue of one group, or of one priority in it. It is known by its first entry; what
stands behind that is fetched only where it could come before what is already there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headway.domain.work_queue import WorkQueueEntry

Key = tuple[Any, ...]
DEEPER = 4


# Each is itself and no other: compared by value, thousands of them would take their time.
@dataclass(frozen=True, eq=False, slots=True)
class Lane:
    """One lane as its first entry shows it; ``room`` is what its group's ``cap`` leaves free.

    >>> Lane(1, 5, datetime(2030, 1, 1), 7, group_priority=9).order[:2]
    (-9, -5)
    """

    group_id: int | None
    priority: int
    created_at: datetime
    first_id: int
    group_priority: int = 0
    room: int | None = None
    cap: int | None = None

    @property
    def order(self) -> Key:
        """Where its first entry stands in the order of dispatch."""
        return (-self.group_priority, -self.priority, self.created_at, self.first_id)

    @property
    def age(self) -> Key:
        """Where its first entry stands among the oldest."""
        return (self.created_at, self.first_id)

    @property
    def full(self) -> bool:
        """Whether the cap of its group leaves no room at all."""
        return self.room is not None and self.room <= 0


Fetch = Callable[[Sequence[Lane], int], Mapping[Lane, list[WorkQueueEntry]]]


@dataclass
class Search:
    """The first *wanted* entries over *lanes*, which are sorted by the key of their first one.

    At most ``most(lane)`` entries of a lane count. ``fetch(lanes, limit)`` returns the first
    *limit* entries of each that may run at all. ``cut`` are those that only the cap of their group
    keeps out, one of each lane.
    """

    lanes: Sequence[Lane]
    wanted: int
    fetch: Fetch
    key: Callable[[WorkQueueEntry], Key]
    starts: Callable[[Lane], Key]
    most: Callable[[Lane], int]
    cut: list[WorkQueueEntry] = field(default_factory=list)
    _entries: dict[Lane, list[WorkQueueEntry]] = field(default_factory=dict)
    _limits: dict[Lane, int] = field(default_factory=dict)
    _opened: int = 0

    def run(self) -> list[WorkQueueEntry]:
        """Open lanes and look deeper into them until nothing unread could come earlier."""
        while True:
            found = self._first()
            last = self.key(found[-1]) if found and len(found) == self.wanted else None
            unopened, deeper = self._unopened(last), self._deeper(last)
            if not unopened and not deeper:
                return found
            self._opened += len(unopened)
            some = max(2, 2 * self.wanted // max(1, len(unopened)))
            self._read(unopened, min(some, self.wanted))
            self._read(deeper, DEEPER * max((self._limits[lane] for lane in deeper), default=0))

    def _first(self) -> list[WorkQueueEntry]:
        lanes = list(self._entries.values())
        if len(lanes) == 1:  # which is in order
            return lanes[0][: self.wanted]
        every = (entry for entries in lanes for entry in entries)
        return sorted(every, key=self.key)[: self.wanted]

    def _unopened(self, last: Key | None) -> list[Lane]:
        coming = self.lanes[self._opened : self._opened + self.wanted]
        return [lane for lane in coming if last is None or self.starts(lane) < last]

    def _deeper(self, last: Key | None) -> list[Lane]:
        """Lanes that may go on behind what was read of them, before the last entry found."""
        return [
            lane
            for lane, entries in self._entries.items()
            if len(entries) == self._limits[lane] < self.most(lane)
            and (last is None or self.key(entries[-1]) < last)
        ]

    def _read(self, lanes: Sequence[Lane], limit: int) -> None:
        if not lanes:
            return
        limit = min(limit, max(map(self.most, lanes)))
        one_more = any(limit >= self.most(lane) == lane.room for lane in lanes)
        for lane, entries in self.fetch(lanes, limit + one_more).items():
            most = self.most(lane)
            self._limits[lane] = min(limit, most)
            self._entries[lane] = entries[: min(limit, most)]
            if limit >= most == lane.room:
                self.cut += entries[most : most + 1]
