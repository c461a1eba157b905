"""Dead letters as the API tells of them."""

from datetime import datetime
from typing import Any

from pydantic import Field

from headway.domain.dead_letter import DeadLetterStatus
from headway.web.api.fields import Answer
from headway.web.api.models.executions import ExecutionItem


class DeadLetterItem(Answer):
    """A manifest that failed too often, and what became of it."""

    id: int = Field(examples=[7])
    external_id: str
    workflow: str
    group_name: str
    status: DeadLetterStatus
    dead_lettered_at: datetime
    reason: str
    failures: int
    execution_id: int | None
    resolved_at: datetime | None
    resolution_note: str | None
    retry_execution_id: int | None


class DeadLetterAnswer(DeadLetterItem):
    """A dead letter with the input that failed, its secrets masked, and the last runs."""

    input: Any
    executions: list[ExecutionItem]


class ResolutionAnswer(Answer):
    """What became of a dead letter; requeued it has an entry."""

    message: str = Field(examples=["requeued as entry 9"])
    entry_id: int | None = None


class ResolutionsAnswer(Answer):
    """What became of several; those resolved already are left out."""

    count: int = Field(examples=[2])
    message: str = Field(examples=["2 requeued"])
