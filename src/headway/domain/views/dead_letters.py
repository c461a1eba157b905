"""Dead letters as lists and pages show them."""

from dataclasses import dataclass
from datetime import datetime

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import Execution
from headway.domain.views.executions import ExecutionOverview


@dataclass(frozen=True)
class DeadLetterFilter:
    """Which dead letters; what is left out does not restrict.

    >>> DeadLetterFilter(group="etl").status is None
    True
    """

    status: DeadLetterStatus | None = None
    group: str | None = None
    workflow: str | None = None


@dataclass(frozen=True)
class DeadLetterOverview:
    """A dead letter, and the manifest it is about."""

    id: int
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


@dataclass(frozen=True)
class DeadLetterDetail:
    """A dead letter with its input, the execution it was written for, and the last runs."""

    letter: DeadLetterOverview
    input: str | None
    execution: Execution | None
    executions: tuple[ExecutionOverview, ...]
