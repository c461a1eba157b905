"""What the end of a run means, by why it ended, and what is kept of what it returned."""

import logging
import math
import time
from datetime import timedelta
from typing import Any

import pytest

from headway import DoNotRetry, RetryAfter
from headway.domain.execution import ExecutionState, Failure, FailureCode, Outcome
from headway.domain.masking import MASK
from headway.errors import JobCancelled
from headway.runner.cancellation import CancellationRegistry, StopReason
from headway.runner.outcome import STEP_LIMIT, ended_by_itself, failed, killed, stopped
from headway.runner.output import MAX_OUTPUT_BYTES, kept

FAILED, CANCELLED = ExecutionState.FAILED, ExecutionState.CANCELLED
HANDED_BACK = Outcome(ExecutionState.HANDED_BACK)
GONE = [StopReason.SHUTDOWN, StopReason.NOT_OURS, StopReason.CUT_OFF]
LOGGER = logging.getLogger("headway.run.load")


def masked(text: str) -> str:
    return text.replace("geheim", MASK)


def failure_of(outcome: Outcome) -> Failure:
    assert outcome.failure is not None
    return outcome.failure


@pytest.mark.parametrize("reason", GONE)
def test_what_somebody_else_goes_on_with_is_handed_back(reason: StopReason) -> None:
    assert stopped("load", reason, JobCancelled("asked")) == HANDED_BACK
    assert killed("load", reason) == HANDED_BACK


def test_a_timeout_is_a_failure_with_the_place_where_it_was_stopped() -> None:
    try:
        raise JobCancelled("geheim asked")
    except JobCancelled as error:
        outcome = stopped("load", StopReason.TIMEOUT, error, masked)
    failure = failure_of(outcome)
    assert (outcome.state, failure.step, failure.type) == (FAILED, "load", FailureCode.JOB_TIMEOUT)
    assert failure.message == "ran longer than its timeout and was stopped"
    assert failure.traceback.rstrip().endswith(f"JobCancelled: {MASK} asked")
    assert "test_outcome.py" in failure.traceback


@pytest.mark.parametrize("reason", [StopReason.REQUESTED, None])
def test_what_a_person_stops_is_cancelled_in_the_words_of_the_step(
    reason: StopReason | None,
) -> None:
    outcome = stopped("load", reason, JobCancelled("geheim asked"), masked)
    assert outcome == Outcome(CANCELLED, Failure("load", "JobCancelled", f"{MASK} asked"))


def test_a_process_that_had_to_be_killed_says_so() -> None:
    told = "did not stop when asked, and was killed"
    cancelled = Failure("load", "JobCancelled", told)
    assert killed("load", StopReason.REQUESTED) == Outcome(CANCELLED, cancelled)
    late = Failure("load", FailureCode.JOB_TIMEOUT, f"ran longer than its timeout, {told}")
    assert killed("load", StopReason.TIMEOUT) == Outcome(FAILED, late)


def test_a_process_that_ended_without_a_word_is_a_failure() -> None:
    failure = Failure("load", FailureCode.PROCESS_ENDED, "with exit code 3")
    assert ended_by_itself("load", "with exit code 3") == Outcome(FAILED, failure)


@pytest.mark.parametrize(
    ("error", "final", "retry_in"),
    [
        (ValueError("no geheim"), False, None),
        (DoNotRetry("no geheim"), True, None),
        (RetryAfter(timedelta(minutes=7), "no geheim"), False, timedelta(minutes=7)),
    ],
)
def test_a_failure_knows_what_the_step_wishes_for_its_retry(
    error: Exception, final: bool, retry_in: timedelta | None
) -> None:
    outcome = failed("load", error, masked)
    failure = failure_of(outcome)
    assert (outcome.state, failure.step, failure.final) == (FAILED, "load", final)
    assert failure.retry_in == retry_in
    assert failure.message.startswith(f"no {MASK}")
    assert "geheim" not in failure.traceback


@pytest.mark.parametrize(
    "outcome",
    [
        failed("load\x00" * 100, ValueError("no rows")),
        stopped("load\x00" * 100, StopReason.TIMEOUT, JobCancelled("asked")),
        stopped("load\x00" * 100, StopReason.REQUESTED, JobCancelled("asked")),
        killed("load\x00" * 100, StopReason.TIMEOUT),
        ended_by_itself("load\x00" * 100, "gone"),
    ],
)
def test_the_name_of_a_step_can_always_be_stored(outcome: Outcome) -> None:
    step = failure_of(outcome).step
    assert step.startswith("load\\x00load") and len(step) <= STEP_LIMIT


class Odd:
    """What no JSON can be made of."""

    def __repr__(self) -> str:
        return "Odd()"


@pytest.mark.parametrize(
    ("value", "warning"),
    [
        (Odd(), "output = Odd() is not kept: it is no JSON ("),
        (math.nan, "output = nan is not kept: it is no JSON ("),
        (
            "x" * (MAX_OUTPUT_BYTES - 1),
            f"output of {MAX_OUTPUT_BYTES + 1} bytes is not kept: at most {MAX_OUTPUT_BYTES} are; "
            "store it elsewhere and return where",
        ),
    ],
)
def test_what_cannot_be_kept_is_said_in_the_log_of_the_run(
    value: Any, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert kept(value, LOGGER) is None
    [record] = caplog.records
    assert (record.name, record.levelname) == (LOGGER.name, "WARNING")
    assert record.getMessage().startswith(warning)


def test_what_is_just_small_enough_is_kept_without_its_secrets() -> None:
    value = "x" * (MAX_OUTPUT_BYTES - 2)
    assert kept(value, LOGGER) == f'"{value}"'
    assert kept(["geheim", 7], LOGGER, lambda plain: [masked(plain[0]), 7]) == f'["{MASK}",7]'


def test_a_registry_knows_who_goes_on_although_asked_before_a_moment() -> None:
    registry = CancellationRegistry()
    for key in (1, 2, 3):
        registry.register(key)
    began = time.monotonic()
    registry.cancel_all([1, 2], StopReason.TIMEOUT)
    registry.unregister(2)
    assert registry.asked_before(began) == set()
    assert registry.asked_before(time.monotonic() + 1) == {1}
    assert registry.ids() == [1, 3]


def test_runs_that_are_given_up_end_and_others_go_on() -> None:
    registry = CancellationRegistry()
    ended: list[int] = []
    for key in (1, 2, 3):
        handle = registry.register(key)
        handle.attach(lambda key=key: ended.append(key))  # type: ignore[misc]
        handle.enter_thread()
    registry.cancel_all([1], StopReason.TIMEOUT)
    assert ended == [], "its thread is not left alone"
    registry.give_up_on([1, 3, 9])
    assert ended == [1, 3]
