"""Whether an entry starts again, decided from how its run ended: the table of the design."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.attempts import (
    MOST_ATTEMPTS,
    Next,
    checked_attempts,
    wait_after,
    what_is_next,
)
from headway.domain.execution import ExecutionState, Failure, FailureCode, Outcome
from headway.domain.retry import RetryPolicy, retry_delay
from headway.errors import DefinitionError

NO_ROWS = Failure("load", "ValueError", "no rows")


def failed(code: str = "ValueError", **fields: Any) -> Outcome:
    return Outcome(ExecutionState.FAILED, Failure("load", code, "no rows", **fields))


ENDS: dict[str, tuple[Outcome, int, int | None, Next]] = {
    "returned": (Outcome(ExecutionState.COMPLETED), 1, None, Next.OVER),
    "cancelled": (Outcome(ExecutionState.CANCELLED, NO_ROWS), 1, None, Next.OVER),
    "handed back": (Outcome(ExecutionState.HANDED_BACK), 3, None, Next.AT_ONCE),
    "raised": (failed(), 1, None, Next.AFTER_BACKOFF),
    "raised, the last but one": (failed(), 2, None, Next.AFTER_BACKOFF),
    "raised, the last": (failed(), 3, None, Next.OVER),
    "raised, and will again": (failed(final=True), 1, None, Next.OVER),
    "too long": (failed(FailureCode.JOB_TIMEOUT), 1, None, Next.AFTER_BACKOFF),
    "too long, and its worker gone": (failed(FailureCode.JOB_TIMEOUT), 1, 3, Next.AFTER_BACKOFF),
    "stale": (failed(FailureCode.STALE_IN_PROGRESS), 1, None, Next.AFTER_BACKOFF),
    "never picked up": (failed(FailureCode.STALE_PENDING), 1, None, Next.AFTER_BACKOFF),
    "never taken": (failed(FailureCode.REFUSED), 1, None, Next.AFTER_BACKOFF),
    "worker lost": (failed(FailureCode.WORKER_LOST), 3, 2, Next.AFTER_CRASH),
    "worker lost too often": (failed(FailureCode.WORKER_LOST), 1, 1, Next.OVER),
}


@pytest.mark.parametrize(("outcome", "attempt", "max_crashes", "then"), ENDS.values(), ids=ENDS)
def test_how_a_run_ends_decides_about_its_entry(
    outcome: Outcome, attempt: int, max_crashes: int | None, then: Next
) -> None:
    assert what_is_next(outcome, attempt, 3, 0, max_crashes) is then


outcomes = st.one_of(
    st.sampled_from([ExecutionState.COMPLETED, ExecutionState.CANCELLED]).map(Outcome),
    st.just(Outcome(ExecutionState.HANDED_BACK)),
    st.builds(failed, st.sampled_from(["ValueError", *FailureCode]), final=st.booleans()),
)


@given(st.lists(outcomes, max_size=40), st.integers(1, 5), st.integers(1, 4))
def test_whatever_happens_an_entry_has_its_attempts_and_no_more(
    ends: list[Outcome], max_attempts: int, max_crashes: int
) -> None:
    charged = crashes = 0
    for outcome in ends:
        then = what_is_next(outcome, charged + 1, max_attempts, crashes, max_crashes)
        charged += then is Next.AFTER_BACKOFF
        crashes += then is Next.AFTER_CRASH
        if then is Next.OVER:
            break
        assert outcome.state in (ExecutionState.FAILED, ExecutionState.HANDED_BACK)
        assert not (outcome.failure and outcome.failure.final and then is Next.AFTER_BACKOFF)
    assert charged < max_attempts and crashes < max_crashes


@given(st.integers(1, 30), st.integers(1), st.floats(0, 1))
def test_the_wait_is_that_of_the_policy_and_its_jitter(
    attempt: int, entry_id: int, jitter: float
) -> None:
    policy = RetryPolicy(jitter=jitter)
    wait, plain = wait_after(NO_ROWS, attempt, policy, entry_id), retry_delay(attempt, policy)
    assert plain <= wait <= plain * (1 + jitter) + timedelta(seconds=1)
    assert wait == wait_after(NO_ROWS, attempt, policy, entry_id)


def test_entries_that_failed_together_do_not_come_back_together() -> None:
    policy = RetryPolicy(jitter=1.0)
    assert len({wait_after(NO_ROWS, 1, policy, entry) for entry in range(50)}) > 30


def test_the_jobs_own_word_counts_more() -> None:
    later = Failure("load", "RetryAfter", "not now", retry_in=timedelta(seconds=7))
    assert wait_after(later, 5, RetryPolicy(jitter=1.0), 1) == timedelta(seconds=7)


@pytest.mark.parametrize("value", [1, 2, MOST_ATTEMPTS])
def test_so_many_attempts_may_be_asked_for(value: int) -> None:
    assert checked_attempts("extract", value) == value


@pytest.mark.parametrize("value", [0, -1, MOST_ATTEMPTS + 1, True, 2.0, "3", None])
def test_what_is_no_number_of_attempts_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(DefinitionError) as refused:
        checked_attempts("extract", value)
    assert str(refused.value) == (
        f"extract: max_attempts = {value!r}: must be a whole number from 1 to 1000; "
        "for example max_attempts=3"
    )


def test_the_wait_of_an_entry_never_changes_between_versions() -> None:
    """What is asked again after an upgrade is still the same moment."""
    policy = RetryPolicy(jitter=1.0)
    waits = [wait_after(NO_ROWS, attempt, policy, 7).total_seconds() for attempt in (1, 2)]
    assert waits == [389.0, 636.0]
    assert wait_after(None, 1, RetryPolicy(), 7) == timedelta(minutes=5)


def test_a_worker_that_was_lost_is_charged_to_the_crashes_until_the_last() -> None:
    lost = failed(FailureCode.WORKER_LOST)
    nexts = [what_is_next(lost, 1, 3, crashes, 3) for crashes in (0, 1, 2)]
    assert nexts == [Next.AFTER_CRASH, Next.AFTER_CRASH, Next.OVER]
    assert what_is_next(lost, 3, 3, 0, None) is Next.OVER
    assert what_is_next(lost, 2, 3, 0, None) is Next.AFTER_BACKOFF
    assert what_is_next(Outcome(ExecutionState.FAILED), 1, 3, 0, 3) is Next.OVER
