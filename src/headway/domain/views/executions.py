"""Executions as lists and pages show them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from headway.domain.execution import Execution, ExecutionState, StepRun
from headway.domain.work_queue import Source


@dataclass(frozen=True)
class ExecutionFilter:
    """Which executions; what is left out does not restrict. Times are those of the dispatch.

    >>> ExecutionFilter(states=[ExecutionState.FAILED], group="etl").manifest is None
    True
    """

    states: Collection[ExecutionState] = ()
    manifest: str | None = None
    group: str | None = None
    workflow: str | None = None
    source: Source | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class ExecutionOverview:
    """An execution without its input, output and traceback; ``failure`` is one line."""

    id: int
    entry_id: int
    external_id: str | None
    group_name: str | None
    workflow: str
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
    failure: str | None

    @property
    def seconds(self) -> float | None:
        """How long it ran, once it has ended; None if it never started."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True)
class ExecutionDetail:
    """Everything about an execution: its steps, and all attempts of its entry, oldest first."""

    execution: Execution
    queued_at: datetime
    scheduled_at: datetime | None
    input_type: str
    cancel_reason: str | None
    steps: tuple[StepRun, ...]
    attempts: tuple[ExecutionOverview, ...]


@dataclass(frozen=True)
class Timeline:
    """What ran between two moments, by start.

    If there was more than asked for it is ``truncated`` to the newest, and ``start`` is the moment
    since which nothing is left out.
    """

    start: datetime
    end: datetime
    executions: tuple[ExecutionOverview, ...]
    truncated: bool


@dataclass(frozen=True)
class Strip:
    """One outcome in the strip of a manifest's last runs."""

    execution_id: int
    state: ExecutionState
    dispatched_at: datetime
    seconds: float | None
