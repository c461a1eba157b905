"""Executions as the API tells of them."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from headway.definition.masking import shown_input
from headway.definition.registry import Registry
from headway.domain.execution import ExecutionState
from headway.domain.views import ExecutionDetail
from headway.domain.work_queue import Source
from headway.web.api.encoding import portable, stored
from headway.web.api.fields import Answer


class ExecutionItem(Answer):
    """An execution without its input, output and traceback; `failure` is one line."""

    id: int = Field(examples=[17])
    entry_id: int
    external_id: str | None = Field(examples=["load-users"])
    group_name: str | None
    workflow: str = Field(examples=["load"])
    source: Source
    state: ExecutionState
    attempt: int
    max_attempts: int
    crashes: int
    queued_at: datetime
    scheduled_for: datetime | None
    dispatched_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    owner: str | None
    task_server: str
    cancel_requested: bool
    running_step: str | None
    progress: float | None
    progress_note: str | None
    failure: str | None = Field(examples=["load: ValueError: no rows"])
    seconds: float | None = Field(description="How long it ran, once it has ended")


class FailureAnswer(Answer):
    """What went wrong in an execution."""

    step: str
    type: str = Field(examples=["ValueError"])
    message: str
    traceback: str
    final: bool = Field(description="Whether trying again would not help")


class StepItem(Answer):
    """A step that was begun; `seconds` is how long it took, none while it runs."""

    name: str
    started_at: datetime
    seconds: float | None


class ExecutionAnswer(Answer):
    """Everything about an execution; secrets of its input are masked."""

    id: int = Field(examples=[17])
    entry_id: int
    external_id: str | None
    group_name: str | None
    workflow: str
    source: Source
    state: ExecutionState
    attempt: int
    max_attempts: int
    crashes: int
    priority: int
    queued_at: datetime
    scheduled_at: datetime | None
    scheduled_for: datetime | None
    dispatched_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    owner: str | None
    task_server: str
    cancel_requested: bool
    cancel_reason: str | None
    running_step: str | None
    progress: float | None
    progress_note: str | None
    input_type: str
    input: Any
    output: Any
    failure: FailureAnswer | None
    steps: list[StepItem]
    attempts: list[ExecutionItem] = Field(description="All attempts of its entry, oldest first")

    @classmethod
    def of(cls, detail: ExecutionDetail, registry: Registry) -> Self:
        """The answer about *detail*."""
        run = detail.execution
        own = {name: getattr(run, name) for name in cls.model_fields if hasattr(run, name)}
        beside = {name: getattr(detail, name) for name in cls.model_fields if hasattr(detail, name)}
        input = portable(shown_input(registry, run.workflow, run.input))
        return cls.model_validate(own | beside | {"input": input, "output": stored(run.output)})


class TimelineAnswer(Answer):
    """What ran between two moments; `truncated` if there was more than asked for."""

    start: datetime
    end: datetime
    executions: list[ExecutionItem]
    truncated: bool
