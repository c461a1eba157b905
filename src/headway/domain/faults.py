"""What is wrong with an entry itself, so that no cycle could ever start it. Pure.

An input of the right size that does not fit its workflow is not among these: the runner validates
it before the first step, and its execution fails with the field and the rule that it broke.
"""

from collections.abc import Sequence
from datetime import datetime

from headway.domain.admission import Admission, Verdict
from headway.domain.work_queue import MAX_INPUT_BYTES, WorkQueueEntry


def fault_of(entry: WorkQueueEntry) -> str | None:
    """Why *entry* can never be dispatched, or None."""
    if entry.missing is not None:
        return f"the {entry.missing} it belongs to does not exist"
    if entry.input_bytes > MAX_INPUT_BYTES:
        return f"its input is {entry.input_bytes} bytes, more than {MAX_INPUT_BYTES}"
    return None


def failing(entries: Sequence[WorkQueueEntry]) -> list[Admission]:
    """Those of *entries* that are to be failed, each with the reason."""
    return [
        Admission(entry, Verdict.FAIL, fault)
        for entry in entries
        if (fault := fault_of(entry)) is not None
    ]


def unknown_since(
    before: dict[str, datetime], waiting: Sequence[str], known: frozenset[str], now: datetime
) -> dict[str, datetime]:
    """Since when no living server knows the workflows that something *waiting* needs.

    While nobody lives at all, nothing is unknown: whoever comes back first would otherwise fail
    what the others have in the queue.

    >>> unknown_since({}, ["load"], frozenset({"extract"}), datetime(2030, 1, 1))
    {'load': datetime.datetime(2030, 1, 1, 0, 0)}
    """
    if not known:
        return {}
    return {name: before.get(name, now) for name in waiting if name not in known}
