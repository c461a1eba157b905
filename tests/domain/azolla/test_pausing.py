"""What a run or a dead letter leaves behind, and under which id it is written."""

from __future__ import annotations

from typing import Any

import pytest

from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import PauseReason
from headway.domain.azolla.pausing import (
    ACTION_LIMIT,
    Pause,
    pause_of_letter,
    pause_of_run,
    sentence,
    why_dead,
)
from headway.domain.execution import Execution, ExecutionState, Failure, FailureCode, Outcome
from tests.domain.rows import NOON, an_execution

TOO_LONG = Failure("read", FailureCode.JOB_TIMEOUT, "longer than 5 s")


def ended(
    state: ExecutionState, failure: Failure | None = None, **changes: Any
) -> tuple[Execution, Outcome]:
    hand_over = changes.pop("hand_over", ())
    return an_execution(state, failure=failure, **changes), Outcome(
        state, failure, hand_over=hand_over
    )


def test_a_dead_letter_says_what_to_do_with_it() -> None:
    assert pause_of_letter(12, "load-users", "ValueError:\nbad row") == Pause(
        "letter-12",
        PauseReason.GATE_FAILED,
        (
            "look at dead letter 12 of load-users: ValueError: bad row",
            "mend load-users and requeue it: headway dead-letters requeue 12",
            "or leave it at that: headway dead-letters acknowledge 12",
        ),
    )


def test_why_something_is_dead() -> None:
    assert why_dead("failed once", "ValueError", "bad row") == "ValueError: bad row"
    assert why_dead("failed once", "ValueError", "") == "ValueError"
    assert why_dead("failed once", "ValueError", None) == "ValueError"
    assert why_dead("failed once", None, "bad row") == "failed once"


@pytest.mark.parametrize("code", [FailureCode.JOB_TIMEOUT, FailureCode.STALE_IN_PROGRESS])
def test_a_run_that_had_all_its_time_exhausts_its_budget(code: FailureCode) -> None:
    late = Failure("read", code, "longer than 5 s")
    why = "took so long in read: longer than 5 s"
    assert pause_of_run(*ended(ExecutionState.FAILED, late)) == Pause(
        "run-41",
        PauseReason.BUDGET_EXHAUSTED,
        (
            f"see why run 41 of load-users {why}",
            "split its work, or raise the timeout of load-users",
        ),
    )
    alone = pause_of_run(*ended(ExecutionState.FAILED, late, external_id=None))
    assert alone and alone.actions == (
        f"see why run 41 of ad-hoc load {why}",
        "split its work, or raise default_job_timeout",
    )


def test_a_completed_run_leaves_what_it_asks_for() -> None:
    asked = ("publish the figures", "call\nfinance")
    assert pause_of_run(*ended(ExecutionState.COMPLETED, hand_over=asked)) == Pause(
        "run-41",
        PauseReason.RUN_COMPLETE,
        ("load-users: publish the figures", "load-users: call finance"),
    )


@pytest.mark.parametrize(
    ("state", "failure", "hand_over"),
    [
        (ExecutionState.COMPLETED, None, ()),
        (ExecutionState.CANCELLED, TOO_LONG, ("publish",)),
        (ExecutionState.FAILED, None, ("publish",)),
        (ExecutionState.FAILED, Failure("read", "ValueError", "no rows"), ()),
        (ExecutionState.FAILED, Failure("read", FailureCode.STALE_PENDING, "no worker"), ()),
    ],
)
def test_other_runs_leave_nothing(
    state: ExecutionState, failure: Failure | None, hand_over: tuple[str, ...]
) -> None:
    assert pause_of_run(*ended(state, failure, hand_over=hand_over)) is None


def test_a_sentence_fits_on_one_line() -> None:
    assert sentence(" a \n\t b\x07 ") == r"a b\x07"
    assert ACTION_LIMIT - 3 <= len(sentence("x" * 1000)) <= ACTION_LIMIT


def test_the_ids_of_what_is_derived_never_change() -> None:
    """Whoever repeats a step after an upgrade writes the same row again."""
    assert [
        ids.event_of("load@noon"),
        ids.query_of("e1", 2, "sales", "objective"),
        ids.response_to("q1"),
        ids.snapshot_of("e1"),
        ids.workorder_of("e1"),
        ids.output_of("w1"),
        ids.run_of("w1"),
        ids.session_of("w1"),
        ids.pause_after("w1"),
        ids.pause_for_deadline("o1", NOON),
        ids.pause_of_letter(12),
        ids.pause_of_execution(41),
    ] == [
        "event-35c30419-286d-5546-b51b-91114c6d6859",
        "query-923a4d62-71a8-500b-94cc-d82c99b60871",
        "response-19fc9315-b0a4-5209-b8fb-b7aa65d9674a",
        "snapshot-0bd9b98a-de05-5a33-9a87-6561c3212273",
        "workorder-078917f6-19bf-5c8b-9b72-b8a8d3ece6b5",
        "output-68df073f-8789-56f0-b7d2-ec97b8783419",
        "run-49398479-a959-559e-a0a9-ceae4b650a95",
        "session-a88a47b8-57fc-5173-bc31-b655a9c558f9",
        "page-a1e86121-0e95-53a1-a6cb-913d77516c69",
        "pause-23c3d064-3226-5525-be6e-12b04fca48c8",
        "letter-12",
        "run-41",
    ]
