"""The attempts an entry has of its own, and whether it starts again after one of its runs ended."""

from datetime import timedelta
from enum import StrEnum

from headway.domain.execution import (
    ExecutionState,
    Failure,
    FailureCode,
    Outcome,
    crashed_too_often,
)
from headway.domain.retry import RetryPolicy, jittered, retry_delay
from headway.domain.text import shown
from headway.errors import DefinitionError

MOST_ATTEMPTS = 1000
MOST_HAND_BACKS = 20


class Next(StrEnum):
    """What becomes of an entry once one of its runs has ended, and what that run is charged to."""

    OVER = "over"
    AT_ONCE = "at once, charged to nothing"
    AFTER_CRASH = "at once, charged to its crashes"
    AFTER_BACKOFF = "after a wait, charged to its attempts"


def checked_attempts(subject: str, value: object) -> int:
    """*value* if an entry may have so many attempts, else an error saying why not.

    >>> checked_attempts("extract-users", 3)
    3
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_ATTEMPTS:
        raise DefinitionError(
            f"{subject}: max_attempts = {shown(value)}: must be a whole number from 1 to "
            f"{MOST_ATTEMPTS}; for example max_attempts=3"
        )
    return value


def handed_back_too_often(before: int) -> bool:
    """Whether the next hand-back of a run that had begun, after so many in a row, is charged.

    >>> [handed_back_too_often(before) for before in (19, 20)]
    [False, True]
    """
    return before >= MOST_HAND_BACKS


def what_is_next(
    outcome: Outcome, attempt: int, max_attempts: int, crashes: int, max_crashes: int | None
) -> Next:
    """Decide about an entry whose *attempt* of *max_attempts*, after so many *crashes*, ended so.

    Those of schedules and dependents have one attempt: the manager makes the next entry, or a dead
    letter. Without *max_crashes* nobody asks whether a worker was lost.

    >>> from headway.domain.execution import Failure
    >>> failed = Outcome(ExecutionState.FAILED, Failure("load", "ValueError", "no rows"))
    >>> [str(what_is_next(failed, attempt, 2, 0, None)) for attempt in (1, 2)]
    ['after a wait, charged to its attempts', 'over']
    """
    if outcome.state is ExecutionState.HANDED_BACK:
        return Next.AT_ONCE
    if outcome.state is not ExecutionState.FAILED or outcome.failure is None:
        return Next.OVER
    if max_crashes is not None and outcome.failure.type == FailureCode.WORKER_LOST:
        return Next.OVER if crashed_too_often(crashes, max_crashes) else Next.AFTER_CRASH
    if outcome.failure.final or attempt >= max_attempts:
        return Next.OVER
    return Next.AFTER_BACKOFF


def wait_after(
    failure: Failure | None, attempt: int, policy: RetryPolicy, entry_id: int
) -> timedelta:
    """How long an entry waits after its failed *attempt*; the job's own word counts more.

    >>> str(wait_after(Failure("load", "ValueError", "no rows"), 2, RetryPolicy(), 7))
    '0:10:00'
    """
    if failure is not None and failure.retry_in is not None:
        return failure.retry_in
    return jittered(retry_delay(attempt, policy), policy, f"entry-{entry_id}", attempt)
