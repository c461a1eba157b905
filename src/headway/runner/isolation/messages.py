"""What a worker and the process of an isolated run say to each other."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headway.definition.replacing import SandboxAddress
from headway.domain.execution import Outcome
from headway.runner.cancellation import StopReason


@dataclass(frozen=True)
class Job:
    """Everything the process needs. Its code is pickled apart, because reading it imports it."""

    code: bytes
    workflow: str
    input: str
    subject: str
    execution_id: int
    manifest: str | None
    attempt: int
    scheduled_for: datetime | None
    idempotency_key: str
    max_memory: int | None
    keep_output: bool
    sandbox: SandboxAddress | None = None


@dataclass(frozen=True)
class StepStarts:
    """A step is about to run; it does when the answer brings no error."""

    step: str


@dataclass(frozen=True)
class Reported:
    """The run says how far it has come."""

    fraction: float
    note: str | None


@dataclass(frozen=True)
class Logged:
    """A log record, its text already made, for the worker's own handlers."""

    record: dict[str, Any]


@dataclass(frozen=True)
class Activating:
    """The run activates dormant dependents; the answer says how many will run."""

    wanted: tuple[tuple[str, Any], ...]
    max_attempts: int


@dataclass(frozen=True)
class Ended:
    """The run is over; nothing follows."""

    outcome: Outcome


@dataclass(frozen=True)
class Answer:
    """The worker's answer to a step that starts, or to an activation."""

    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True)
class Stop:
    """The worker asks the run to stop."""

    reason: StopReason


FromChild = StepStarts | Reported | Logged | Activating | Ended
FromWorker = Answer | Stop
