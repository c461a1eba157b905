"""Who gets a slot. Pure: a walk down the ordered queue with two checks that act differently.

The global limit stops the walk; a full group is passed over and the walk goes on, so that no
group holds up another.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headway.domain.work_queue import WorkQueueEntry
from headway.store.executions import Active


class Verdict(StrEnum):
    """What the walk decided about an entry."""

    DISPATCH = "dispatch"
    SKIP = "skip"
    STOP = "stop"


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
) -> list[Admission]:
    """Walk *entries* in order and say for each whether it gets a slot.

    Workflows in *excluded* neither need nor use one. Everything after the global limit is
    reached is stopped.
    """
    total = active.total
    by_group = Counter(active.by_group)
    admissions = []
    for entry in entries:
        free_of_limits = entry.workflow in excluded
        admission = _judge(entry, total, by_group, max_active_jobs, free_of_limits)
        admissions.append(admission)
        if admission.verdict is Verdict.DISPATCH and not free_of_limits:
            total += 1
            if entry.group_id is not None:
                by_group[entry.group_id] += 1
    return admissions


def _judge(
    entry: WorkQueueEntry,
    total: int,
    by_group: Counter[int],
    max_active_jobs: int | None,
    free_of_limits: bool,
) -> Admission:
    if free_of_limits:
        return Admission(entry, Verdict.DISPATCH, "excluded from max_active_jobs")
    if max_active_jobs is not None and total >= max_active_jobs:
        return Admission(entry, Verdict.STOP, f"global limit of {max_active_jobs} reached")
    cap = entry.group_max_active_jobs
    if entry.group_id is not None and cap is not None and by_group[entry.group_id] >= cap:
        reason = f"group {entry.group_name!r} has reached its cap of {cap}"
        return Admission(entry, Verdict.SKIP, reason)
    return Admission(entry, Verdict.DISPATCH, "dispatched")
