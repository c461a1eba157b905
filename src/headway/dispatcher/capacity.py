"""Who gets a slot. Pure: a walk down the ordered queue with two checks that act differently.

The global limit stops the walk; a full group is passed over and the walk goes on, so that no
group holds up another.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headway.domain.routing import LOCAL
from headway.domain.work_queue import WorkQueueEntry
from headway.store.executions import Active


class Verdict(StrEnum):
    """What the walk decided about an entry."""

    DISPATCH = "dispatch"
    SKIP = "skip"
    STOP = "stop"
    FAIL = "fail"


@dataclass(frozen=True)
class Admission:
    """One entry, what was decided about it, and why."""

    entry: WorkQueueEntry
    verdict: Verdict
    reason: str


def admit(
    entries: Sequence[WorkQueueEntry],
    active: Active,
    max_active_jobs: int | None,
    excluded: Collection[str] = (),
    room: int | None = None,
) -> list[Admission]:
    """Walk *entries* in order and say for each whether it gets a slot.

    Workflows in *excluded* neither need nor use a global slot; their group's cap binds them like
    any other. Everything after the global limit is reached is stopped. At most *room* go to the
    own workers, who have their hands full with those; one they have no hand for takes no slot
    from what goes elsewhere.
    """
    total = active.total
    by_group = Counter(active.by_group)
    admissions = []
    for entry in entries:
        counts = entry.workflow not in excluded
        full = counts and max_active_jobs is not None and total >= max_active_jobs
        if full:
            reason = f"global limit of {max_active_jobs} reached"
            admissions.append(Admission(entry, Verdict.STOP, reason))
            continue
        admission = _by_group(entry, by_group)
        if admission.verdict is Verdict.DISPATCH and waits_for_worker(entry, room):
            admission = Admission(entry, Verdict.SKIP, "no worker is free")
        admissions.append(admission)
        if admission.verdict is Verdict.DISPATCH:
            room = room_left(entry, room)
            total += counts
            if entry.group_id is not None:
                by_group[entry.group_id] += 1
    return admissions


def _by_group(entry: WorkQueueEntry, by_group: Counter[int]) -> Admission:
    cap = entry.group_max_active_jobs
    if entry.group_id is not None and cap is not None and by_group[entry.group_id] >= cap:
        reason = f"group {entry.group_name!r} has reached its cap of {cap}"
        return Admission(entry, Verdict.SKIP, reason)
    return Admission(entry, Verdict.DISPATCH, "dispatched")


def waits_for_worker(entry: WorkQueueEntry, room: int | None) -> bool:
    """Whether *entry* goes to the own workers and they have no *room*; None is room for all."""
    return entry.task_server == LOCAL and room is not None and room <= 0


def room_left(entry: WorkQueueEntry, room: int | None) -> int | None:
    """The own workers' room once *entry* has been admitted."""
    return room if room is None or entry.task_server != LOCAL else room - 1
