"""The execution: the record of one attempt, and the states it may move through."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from headway.domain.routing import LOCAL
from headway.domain.work_queue import Source
from headway.errors import IllegalTransition


class ExecutionState(StrEnum):
    """Where an attempt stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    HANDED_BACK = "handed_back"

    @property
    def terminal(self) -> bool:
        """Whether nothing may change this execution any more.

        >>> ExecutionState.COMPLETED.terminal
        True
        """
        return not TRANSITIONS[self]


TRANSITIONS: dict[ExecutionState, frozenset[ExecutionState]] = {
    ExecutionState.PENDING: frozenset(
        {
            ExecutionState.IN_PROGRESS,
            ExecutionState.FAILED,
            ExecutionState.CANCELLED,
            ExecutionState.HANDED_BACK,
        }
    ),
    ExecutionState.IN_PROGRESS: frozenset(
        {
            ExecutionState.COMPLETED,
            ExecutionState.FAILED,
            ExecutionState.CANCELLED,
            ExecutionState.HANDED_BACK,
        }
    ),
    ExecutionState.COMPLETED: frozenset(),
    ExecutionState.FAILED: frozenset(),
    ExecutionState.CANCELLED: frozenset(),
    ExecutionState.HANDED_BACK: frozenset(),
}


def check_transition(current: ExecutionState, wanted: ExecutionState) -> None:
    """Raise :class:`IllegalTransition` unless *current* may become *wanted*.

    >>> check_transition(ExecutionState.PENDING, ExecutionState.IN_PROGRESS)
    """
    if wanted not in TRANSITIONS[current]:
        raise IllegalTransition(current, wanted)


class FailureCode(StrEnum):
    """Names recorded as the exception type where headway itself ended the attempt."""

    JOB_TIMEOUT = "JobTimeout"
    STALE_PENDING = "StalePendingTimeout"
    STALE_IN_PROGRESS = "StaleInProgressTimeout"
    WORKER_LOST = "WorkerLost"
    REFUSED = "HandOverRefused"
    NOT_DISPATCHABLE = "NotDispatchable"
    UNKNOWN_WORKFLOW = "UnknownWorkflow"
    PROCESS_ENDED = "ProcessEnded"


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, ready to be stored: the step, and the exception as bounded plain text.

    ``final`` says that trying again would not help, ``retry_in`` when it would.

    >>> Failure("load", "ValueError", "no rows").step
    'load'
    """

    step: str
    type: str
    message: str
    traceback: str = ""
    final: bool = False
    retry_in: timedelta | None = None

    @property
    def summary(self) -> str:
        """The failure in one line, without its traceback.

        >>> Failure("load", "ValueError", "no rows").summary
        'load: ValueError: no rows'
        """
        first_line = self.message.partition("\n")[0]
        return f"{self.step}: {self.type}: {first_line}"


class StepRun(NamedTuple):
    """A step that was begun: when, and how long it took; None if nobody has seen it end.

    >>> from datetime import UTC
    >>> StepRun("load", datetime(2030, 1, 1, tzinfo=UTC), 0.5).seconds
    0.5
    """

    name: str
    started_at: datetime
    seconds: float | None = None


class Outcome(NamedTuple):
    """How an attempt ended; ``hand_over`` says what a person is to do after a run that completed.

    ``steps`` are those that ran, None if whoever ended it does not know them.

    >>> Outcome(ExecutionState.COMPLETED).state.terminal
    True
    """

    state: ExecutionState
    failure: Failure | None = None
    output: str | None = None
    hand_over: tuple[str, ...] = ()
    steps: tuple[StepRun, ...] | None = None


def crashed_too_often(crashes_before: int, max_crashes: int) -> bool:
    """Whether a run whose worker was lost was the last its entry gets.

    >>> [crashed_too_often(before, 3) for before in (0, 1, 2)]
    [False, False, True]
    """
    return crashes_before + 1 >= max_crashes


class Ended(NamedTuple):
    """What whoever records the end of a run is told about it; the whole is in the history.

    >>> noon = datetime(2030, 1, 1, 12)
    >>> state, source = ExecutionState.COMPLETED, Source.AD_HOC
    >>> Ended(1, None, None, None, "load", source, None, noon, noon, state).seconds
    0.0
    """

    id: int
    manifest_id: int | None
    external_id: str | None
    group_name: str | None
    workflow: str
    source: str
    scheduled_for: datetime | None
    started_at: datetime | None
    finished_at: datetime
    state: ExecutionState
    failure: Failure | None = None

    @property
    def seconds(self) -> float | None:
        """How long it ran; None if it never started."""
        return None if self.started_at is None else _seconds(self.started_at, self.finished_at)

    def told(self) -> dict[str, Any]:
        """What an event about this end says."""
        return _told(self)


class Execution(NamedTuple):
    """One attempt, live or finished. Its id is the epoch handed to user code as fencing token.

    ``crashes`` counts the workers lost to earlier attempts of the same entry; ``task_server`` is
    where the dispatcher has sent it. ``max_attempts`` is how often its entry is tried by itself;
    what the manager tries again has one attempt for each entry.
    """

    id: int
    entry_id: int
    manifest_id: int | None
    external_id: str | None
    group_name: str | None
    workflow: str
    input: str
    source: str
    priority: int
    attempt: int
    crashes: int
    state: ExecutionState
    scheduled_for: datetime | None
    dispatched_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    owner: str | None
    cancel_requested: bool
    running_step: str | None
    step_started_at: datetime | None
    progress: float | None
    progress_note: str | None
    failure: Failure | None
    output: str | None
    task_server: str = LOCAL
    parents_seen: str | None = None
    max_attempts: int = 1
    queued_at: datetime | None = None

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at the same work, and for no other: an occurrence, the
        successes of its parents, or the entry somebody has made."""
        if self.external_id is not None and self.scheduled_for is not None:
            return f"{self.external_id}@{self.scheduled_for.isoformat()}"
        if self.external_id is not None and self.source == Source.DEPENDENT:
            seen = hashlib.sha256((self.parents_seen or "").encode()).hexdigest()[:16]
            return f"{self.external_id}@{seen}"
        return f"entry-{self.entry_id}"

    def was_claimed_with(self, step: str) -> bool:
        """Whether its claim has put *step* on record as running, and found no cancellation."""
        return self.running_step == step and not self.cancel_requested

    @property
    def lost(self) -> bool:
        """Whether this attempt ended because its worker did."""
        return self.failure is not None and self.failure.type == FailureCode.WORKER_LOST

    @property
    def seconds(self) -> float | None:
        """How long it ran, once it has ended; None if it never started."""
        if self.started_at is None or self.finished_at is None:
            return None
        return _seconds(self.started_at, self.finished_at)

    def told(self) -> dict[str, Any]:
        """What an event about this execution says."""
        return _told(self)

    def ended(self, finished_at: datetime) -> Ended:
        """What is told of it once it has ended."""
        return Ended(
            self.id,
            self.manifest_id,
            self.external_id,
            self.group_name,
            self.workflow,
            self.source,
            self.scheduled_for,
            self.started_at,
            finished_at,
            self.state,
            self.failure,
        )


def _seconds(started_at: datetime, finished_at: datetime) -> float:
    return (finished_at - started_at).total_seconds()


def _told(one: Ended | Execution) -> dict[str, Any]:
    return {
        "execution_id": one.id,
        "external_id": one.external_id,
        "group": one.group_name,
        "workflow": one.workflow,
        "seconds": one.seconds,
        "failure": one.failure and one.failure.summary,
    }
