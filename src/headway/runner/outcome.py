"""What the end of a run means. Pure."""

from collections.abc import Callable

from headway.domain.execution import ExecutionState, Failure, FailureCode, Outcome
from headway.domain.text import describe_exception, printable
from headway.errors import JobCancelled
from headway.run import DoNotRetry, RetryAfter
from headway.runner.cancellation import StopReason

STEP_LIMIT = 255

Redact = Callable[[str], str]
"""Replaces the secrets of a run in a text."""


def failed(step: str, error: BaseException, redact: Redact = str) -> Outcome:
    """A failure with the step's name and the exception as bounded, storable, redacted text.

    >>> failed("load", ValueError("no rows")).failure.message
    'no rows'
    """
    type_name, message, traceback = describe_exception(error, redact)
    failure = Failure(
        printable(step, STEP_LIMIT),
        type_name,
        message,
        traceback,
        final=isinstance(error, DoNotRetry),
        retry_in=error.delay if isinstance(error, RetryAfter) else None,
    )
    return Outcome(ExecutionState.FAILED, failure)


def stopped(
    step: str, reason: StopReason | None, error: BaseException, redact: Redact = str
) -> Outcome:
    """What becomes of a run that was stopped, by why it was stopped.

    >>> stopped("load", StopReason.SHUTDOWN, RuntimeError()).state
    <ExecutionState.HANDED_BACK: 'handed_back'>
    """
    if reason in (StopReason.SHUTDOWN, StopReason.NOT_OURS, StopReason.CUT_OFF):
        return Outcome(ExecutionState.HANDED_BACK)
    _, message, traceback = describe_exception(error, redact)
    if reason is StopReason.TIMEOUT:
        told = "ran longer than its timeout and was stopped"
        failure = Failure(printable(step, STEP_LIMIT), FailureCode.JOB_TIMEOUT, told, traceback)
        return Outcome(ExecutionState.FAILED, failure)
    failure = Failure(printable(step, STEP_LIMIT), "JobCancelled", message)
    return Outcome(ExecutionState.CANCELLED, failure)


def killed(step: str, reason: StopReason | None) -> Outcome:
    """What becomes of a run whose process had to be killed because it did not stop when asked.

    >>> killed("load", StopReason.TIMEOUT).failure.summary
    'load: JobTimeout: ran longer than its timeout, did not stop when asked, and was killed'
    """
    if reason is StopReason.TIMEOUT:
        told = "ran longer than its timeout, did not stop when asked, and was killed"
        failure = Failure(printable(step, STEP_LIMIT), FailureCode.JOB_TIMEOUT, told)
        return Outcome(ExecutionState.FAILED, failure)
    return stopped(step, reason, JobCancelled("did not stop when asked, and was killed"))


def ended_by_itself(step: str, told: str) -> Outcome:
    """What becomes of a run whose process ended without a word.

    >>> ended_by_itself("load", "its process was ended by SIGSEGV").failure.type
    <FailureCode.PROCESS_ENDED: 'ProcessEnded'>
    """
    failure = Failure(printable(step, STEP_LIMIT), FailureCode.PROCESS_ENDED, told)
    return Outcome(ExecutionState.FAILED, failure)
