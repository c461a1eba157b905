"""What one cycle of the dispatcher admits, faults, ageing and limits taken together. Pure.

Who wants to know why an entry is not dispatched asks the same function as the dispatcher.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from headway.domain.admission import Active, Admission, admit
from headway.domain.ageing import aged_first, free_slots
from headway.domain.faults import failing
from headway.domain.routing import LOCAL
from headway.domain.work_queue import WorkQueueEntry

# As many wait for a slot as there are slots; the rest stays queued, where limits, priorities and
# cancellation still reach it, and nothing grows stale.
KEPT_READY = 2
# Who dispatches for himself alone starts it at once: what waited for him would have to be claimed.
NOTHING_READY = 1


@dataclass(frozen=True)
class Limits:
    """What binds a cycle: the global limit, who is outside it, and the own workers' slots.

    Without *slots* nobody knows the workers, and there is room for all; *ready* times as many are
    dispatched, but no more than are *free*, where that is known. What might have run since
    *aged_before* goes ahead.

    >>> Limits(max_active_jobs=10, slots=2).room(Active(3, {}, local=3))
    1
    """

    max_active_jobs: int | None = None
    excluded: Collection[str] = ()
    slots: int | None = None
    aged_before: datetime | None = None
    ready: int = KEPT_READY
    free: int | None = None

    def room(self, active: Active) -> int | None:
        """How many more the own workers take; None is room for all."""
        if self.slots is None:
            return None
        room = max(0, self.slots * self.ready - active.local)
        return room if self.free is None else min(room, self.free)


def decide_admissions(
    entries: Sequence[WorkQueueEntry], active: Active, limits: Limits
) -> tuple[Admission, ...]:
    """Say of each of *entries*, which are in their order, whether it is dispatched, and why not."""
    faulty = failing(entries)
    ids = {one.entry.id for one in faulty}
    sound = [entry for entry in entries if entry.id not in ids] if ids else entries
    room, excluded = limits.room(active), limits.excluded
    elsewhere = sum(entry.task_server != LOCAL for entry in sound)
    hands = None if room is None else room + elsewhere
    slots = free_slots(len(sound), active, limits.max_active_jobs, hands)
    ordered = aged_first(sound, active, slots, limits.aged_before, excluded, room)
    return (*faulty, *admit(ordered, active, limits.max_active_jobs, excluded, room))
