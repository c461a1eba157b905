"""The work queue as lists and pages show it."""

from dataclasses import dataclass
from datetime import datetime

from headway.domain.work_queue import Source


@dataclass(frozen=True)
class QueueFilter:
    """Which entries; what is left out does not restrict.

    >>> QueueFilter(group="etl").source is None
    True
    """

    group: str | None = None
    source: Source | None = None
    manifest: str | None = None


@dataclass(frozen=True)
class EntryOverview:
    """An entry that waits, without its input; a ``delayed`` one waits for ``scheduled_at``."""

    id: int
    external_id: str | None
    workflow: str
    group_name: str | None
    group_priority: int
    source: Source
    priority: int
    created_at: datetime
    scheduled_at: datetime | None
    scheduled_for: datetime | None
    attempts: int
    max_attempts: int
    delayed: bool


@dataclass(frozen=True)
class QueuedEntry:
    """An entry that waits to be dispatched, with its input."""

    id: int
    external_id: str | None
    workflow: str
    group_name: str | None
    source: Source
    priority: int
    input: str
    created_at: datetime
    scheduled_at: datetime | None
    scheduled_for: datetime | None
    attempts: int
    max_attempts: int
