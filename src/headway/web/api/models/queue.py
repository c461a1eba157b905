"""Entries of the work queue as the API tells of them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from headway.domain.execution import ExecutionState
from headway.domain.work_queue import Source
from headway.web.api.fields import Answer


class EntryItem(Answer):
    """An entry that waits; a `delayed` one waits for `scheduled_at`."""

    id: int = Field(examples=[7])
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


class EntryAnswer(Answer):
    """An entry that waits, with its input, whose secrets are masked."""

    id: int = Field(examples=[7])
    external_id: str | None
    workflow: str
    group_name: str | None
    source: Source
    priority: int
    input: Any
    created_at: datetime
    scheduled_at: datetime | None
    scheduled_for: datetime | None
    attempts: int
    max_attempts: int


class Queued(Answer):
    """The entry that was queued."""

    entry_id: int = Field(examples=[7])


class QueuedMany(Answer):
    """How many entries were queued."""

    queued: int = Field(examples=[12])


class CancelledAnswer(Answer):
    """What was reached: how many will never start, how many were asked to stop, or how the one
    named had ended already."""

    cancelled: int
    requested: int
    finished: ExecutionState | None
