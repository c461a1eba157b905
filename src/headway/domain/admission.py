"""Who gets a slot. Pure: a walk down the ordered queue with two checks that act differently.

The global limit stops the walk; a full group is passed over and the walk goes on, so that no
group holds up another.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headway.domain.routing import LOCAL
from headway.domain.work_queue import WorkQueueEntry

# A group's id, a workflow and a task server; how many live of these, and the oldest of them.
Kind = tuple[int | None, str, str, int, int]


@dataclass(frozen=True)
class Active:
    """How many executions hold a slot: of the global limit, per group, and of the own workers;
    and the id of the oldest that lives.

    >>> Active(3, {7: 2}).by_group[7]
    2
    """

    total: int
    by_group: dict[int, int]
    local: int = 0
    oldest: int | None = None

    @classmethod
    def counted(cls, kinds: Sequence[Kind], excluded: Collection[str] = ()) -> "Active":
        """From how many there are of each kind; workflows in *excluded* hold a slot of their
        group's, none in all.

        >>> Active.counted([(7, "load", "local", 2, 41), (None, "load", "celery", 1, 40)])
        Active(total=3, by_group={7: 2}, local=2, oldest=40)
        """
        by_group = Counter[int]()
        for group_id, _, _, active, _ in kinds:
            if group_id is not None:
                by_group[group_id] += active
        return cls(
            sum(active for _, workflow, _, active, _ in kinds if workflow not in excluded),
            dict(by_group),
            sum(active for _, _, task_server, active, _ in kinds if task_server == LOCAL),
            min((oldest for *_, oldest in kinds), default=None),
        )


NO_WORKER_FREE = "no worker is free"


class Verdict(StrEnum):
    """What the walk decided about an entry."""

    DISPATCH = "dispatch"
    SKIP = "skip"
    STOP = "stop"
    FAIL = "fail"


class Admission(NamedTuple):
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
        if globally_full(entry, total, max_active_jobs, excluded):
            reason = f"global limit of {max_active_jobs} reached"
            admissions.append(Admission(entry, Verdict.STOP, reason))
        elif group_full(entry, by_group):
            admissions.append(Admission(entry, Verdict.SKIP, _cap_reached(entry)))
        elif waits_for_worker(entry, room):
            admissions.append(Admission(entry, Verdict.SKIP, NO_WORKER_FREE))
        else:
            admissions.append(Admission(entry, Verdict.DISPATCH, "dispatched"))
            room = room_left(entry, room)
            total += entry.workflow not in excluded
            if entry.group_id is not None:
                by_group[entry.group_id] += 1
    return admissions


def has_room(admissions: Iterable[Admission]) -> bool:
    """Whether neither the global limit nor the workers' hands kept one of them out.

    >>> has_room([])
    True
    """
    return not any(
        one.verdict is Verdict.STOP or one.reason == NO_WORKER_FREE for one in admissions
    )


def _cap_reached(entry: WorkQueueEntry) -> str:
    return f"group {entry.group_name!r} has reached its cap of {entry.group_max_active_jobs}"


def globally_full(
    entry: WorkQueueEntry, total: int, max_active_jobs: int | None, excluded: Collection[str]
) -> bool:
    """Whether *entry* needs one of the global slots and *total* executions hold them all."""
    return (
        max_active_jobs is not None and total >= max_active_jobs and entry.workflow not in excluded
    )


def group_full(entry: WorkQueueEntry, by_group: Mapping[int, int]) -> bool:
    """Whether the group of *entry* has a cap, and as many executions as that."""
    cap = entry.group_max_active_jobs
    return cap is not None and entry.group_id is not None and by_group.get(entry.group_id, 0) >= cap


def waits_for_worker(entry: WorkQueueEntry, room: int | None) -> bool:
    """Whether *entry* goes to the own workers and they have no *room*; None is room for all."""
    return entry.task_server == LOCAL and room is not None and room <= 0


def room_left(entry: WorkQueueEntry, room: int | None) -> int | None:
    """The own workers' room once *entry* has been admitted."""
    return room if room is None or entry.task_server != LOCAL else room - 1
