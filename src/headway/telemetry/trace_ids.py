"""Which trace an entry is, and which span each part of its way: derived, so nothing is stored.

Every process knows the entry's id, when it was queued and its workflow, from the rows it reads
anyway; from these each derives the same ids and can name a parent span that another has sent.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class TraceIds:
    """The trace of one entry of the work queue.

    >>> ids = TraceIds.of(7, datetime(2030, 1, 7, 12), "extract")
    >>> ids == TraceIds.of(7, datetime(2030, 1, 7, 12), "extract")
    True
    >>> ids.of_dispatch(3) == ids.of_dispatch(4)
    False
    """

    trace: int

    @classmethod
    def of(cls, entry_id: int, queued_at: datetime, workflow: str) -> "TraceIds":
        """The trace of the entry with this id; the other two tell deployments apart."""
        return cls(_derived(16, entry_id, queued_at.timestamp(), workflow))

    @classmethod
    def told(cls, fields: dict[str, Any]) -> "TraceIds":
        """The trace of the entry an event is about."""
        return cls.of(fields["entry_id"], fields["queued_at"], fields["workflow"])

    @property
    def enqueue(self) -> int:
        """The span every other one of the trace is below."""
        return _derived(8, self.trace, "enqueue")

    def of_dispatch(self, execution_id: int) -> int:
        """The span of the dispatch that has led to this execution."""
        return _derived(8, self.trace, "dispatch", execution_id)

    def of_run(self, execution_id: int) -> int:
        """The span of the run itself."""
        return _derived(8, self.trace, "run", execution_id)


def _derived(size: int, *parts: object) -> int:
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:size], "big") or 1  # zero means "no id"
