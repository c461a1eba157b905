"""Nobody waits for ever behind better ones. Pure: no database, no clock.

The order is by priority; only an entry that could have run for longer than ``starvation_after``
moves to the front, the oldest first, in a tenth of a cycle's slots and at least in one.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime

from headway.domain.admission import Active, group_full, room_left, waits_for_worker
from headway.domain.work_queue import WorkQueueEntry, age

SHARE = 10


def free_slots(
    waiting: int, active: Active, max_active_jobs: int | None, room: int | None = None
) -> int:
    """How many of so many *waiting* entries may start in this cycle at most.

    *room* is for how many of them somebody has a hand free.

    >>> free_slots(100, Active(95, {}), 100), free_slots(100, Active(95, {}), None, room=7)
    (5, 7)
    """
    limits = [waiting]
    if max_active_jobs is not None:
        limits.append(max_active_jobs - active.total)
    if room is not None:
        limits.append(room)
    return max(0, min(limits))


def aged_first(
    entries: Sequence[WorkQueueEntry],
    active: Active,
    slots: int,
    before: datetime | None,
    excluded: Collection[str] = (),
    room: int | None = None,
) -> list[WorkQueueEntry]:
    """*entries* in their order, but those that wait since *before* in front, as far as they may.

    One whose group is full, or for which the own workers have no *room*, gives its place to the
    next oldest; one *excluded* from the global limit waits for no slot. Without *before* nobody
    ages.
    """
    if before is None or slots <= 0:
        return list(entries)
    starving = [one for one in entries if (one.eligible_since or one.created_at) <= before]
    front: list[WorkQueueEntry] = []
    by_group = Counter(active.by_group)
    for one in sorted(starving, key=age):
        if len(front) == max(1, slots // SHARE):
            break
        startable = not group_full(one, by_group) and not waits_for_worker(one, room)
        if one.workflow not in excluded and startable:
            front.append(one)
            room = room_left(one, room)
            by_group[one.group_id or 0] += 1
    moved = {one.id for one in front}
    return front + [one for one in entries if one.id not in moved] if moved else list(entries)
