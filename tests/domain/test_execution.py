"""An execution: the states it moves through, what is told of it, and what stays the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headway.domain.dead_letter import (
    crash_reason,
    dead_letter_reason,
    failed_too_often,
    hand_back_reason,
)
from headway.domain.execution import (
    Ended,
    ExecutionState,
    Failure,
    FailureCode,
    check_transition,
    crashed_too_often,
)
from headway.domain.views import ExecutionOverview, GroupOverview, NodeState, state_of
from headway.domain.work_queue import AUTOMATIC, Source
from headway.errors import IllegalTransition
from tests.domain.rows import MINUTE, NOON, an_execution

LIVE = {ExecutionState.PENDING, ExecutionState.IN_PROGRESS}
NO_ROWS = Failure("read", "ValueError", "no rows\nat all")


@pytest.mark.parametrize("state", ExecutionState)
def test_a_live_execution_may_end_and_an_ended_one_stays_as_it_is(state: ExecutionState) -> None:
    allowed = set(ExecutionState) - {ExecutionState.PENDING, state} if state in LIVE else set()
    if state is ExecutionState.PENDING:
        allowed -= {ExecutionState.COMPLETED}
    for wanted in ExecutionState:
        if wanted in allowed:
            check_transition(state, wanted)
        else:
            with pytest.raises(IllegalTransition) as refused:
                check_transition(state, wanted)
            words = f"an execution that is {state} cannot become {wanted}"
            assert str(refused.value) == words
            assert (refused.value.current, refused.value.wanted) == (state, wanted)
    assert state.terminal is (state not in LIVE)


def test_what_is_told_of_an_execution_and_of_its_end_is_the_same() -> None:
    running = an_execution(
        ExecutionState.FAILED,
        started_at=NOON + MINUTE,
        finished_at=NOON + 3 * MINUTE,
        failure=NO_ROWS,
    )
    ended = running.ended(NOON + 3 * MINUTE)
    assert ended == Ended(
        id=41,
        manifest_id=1,
        external_id="load-users",
        group_name="users",
        workflow="load",
        source="schedule",
        scheduled_for=NOON,
        started_at=NOON + MINUTE,
        finished_at=NOON + 3 * MINUTE,
        state=ExecutionState.FAILED,
        failure=NO_ROWS,
    )
    assert ended.told() == running.told()
    assert ended.told() == {
        "execution_id": 41,
        "external_id": "load-users",
        "group": "users",
        "workflow": "load",
        "seconds": 120.0,
        "failure": "read: ValueError: no rows",
    }


def test_what_never_started_took_no_time() -> None:
    pending = an_execution()
    assert pending.seconds is None
    assert an_execution(started_at=NOON).seconds is None
    assert an_execution(finished_at=NOON).seconds is None
    assert pending.ended(NOON).seconds is None
    assert pending.told()["failure"] is None


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, "load-users@2030-01-07T12:00:00+00:00"),
        ({"source": "trigger", "scheduled_for": None}, "entry-7"),
        ({"external_id": None}, "entry-7"),
        ({"external_id": None, "source": "dependent", "scheduled_for": None}, "entry-7"),
        (
            {"source": "dependent", "scheduled_for": None, "parents_seen": "[3]"},
            "load-users@06d033ece6645de5",
        ),
        (
            {"source": "dependent", "scheduled_for": None},
            "load-users@e3b0c44298fc1c14",
        ),
    ],
)
def test_the_idempotency_key_is_that_of_the_work(changes: dict[str, Any], key: str) -> None:
    assert an_execution(**changes).idempotency_key == key
    assert an_execution(**changes, id=42, attempt=2).idempotency_key == key


def test_a_claim_is_known_by_its_step() -> None:
    claimed = an_execution(ExecutionState.IN_PROGRESS, running_step="read")
    assert claimed.was_claimed_with("read")
    assert not claimed.was_claimed_with("write")
    assert not claimed._replace(cancel_requested=True).was_claimed_with("read")


def test_only_a_lost_worker_loses_an_execution() -> None:
    lost = Failure("read", FailureCode.WORKER_LOST, "its lease ended")
    assert an_execution(ExecutionState.FAILED, failure=lost).lost
    assert not an_execution(ExecutionState.FAILED, failure=NO_ROWS).lost
    assert not an_execution().lost


def test_the_sources_that_headway_decides_about_itself() -> None:
    assert {source for source in Source if source.automatic} == AUTOMATIC
    assert {Source.SCHEDULE, Source.DEPENDENT, Source.ACTIVATION} == AUTOMATIC


def test_when_often_is_too_often() -> None:
    assert [failed_too_often(1, limit) for limit in (0, 1, 2)] == [True, True, False]
    assert [crashed_too_often(1, most) for most in (1, 2, 3)] == [True, True, False]


def test_why_there_is_a_dead_letter() -> None:
    assert dead_letter_reason(1, 1) == "failed once (max_attempts 1)"
    assert dead_letter_reason(2, 1) == "failed 2 times in a row (max_attempts 1)"
    assert crash_reason(4) == "its job killed its worker 4 times"
    charged = "its job was charged with 4 lost workers"
    assert hand_back_reason(4) == f"{charged}, the last for being handed back too often"


# --- how it is shown


@pytest.mark.parametrize(
    ("running", "dead", "enabled", "queued", "state"),
    [
        (True, True, False, True, NodeState.RUNNING),
        (False, True, False, True, NodeState.FAILED),
        (False, False, False, True, NodeState.DISABLED),
        (False, False, True, True, NodeState.QUEUED),
        (False, False, True, False, NodeState.IDLE),
    ],
)
def test_the_first_state_that_holds_is_shown(
    running: bool, dead: bool, enabled: bool, queued: bool, state: NodeState
) -> None:
    assert state_of(running=running, dead=dead, enabled=enabled, queued=queued) is state
    group = GroupOverview(
        name="users",
        max_active_jobs=None,
        priority=0,
        enabled=enabled,
        manifests=9,
        queued=5 * queued,
        active=5 * running,
        completed=9,
        failed=9,
        dead_letters=5 * dead,
    )
    assert group.state is state


def test_an_overview_knows_how_long_its_execution_ran() -> None:
    overview = ExecutionOverview(
        id=41,
        entry_id=7,
        external_id="load-users",
        group_name="users",
        workflow="load",
        source=Source.SCHEDULE,
        state=ExecutionState.COMPLETED,
        attempt=1,
        max_attempts=1,
        crashes=0,
        queued_at=NOON,
        scheduled_for=NOON,
        dispatched_at=NOON,
        started_at=NOON + MINUTE,
        finished_at=NOON + MINUTE + timedelta(milliseconds=1500),
        owner="me",
        task_server="local",
        cancel_requested=False,
        running_step=None,
        progress=None,
        progress_note=None,
        failure=None,
    )
    assert overview.seconds == 1.5
    assert replace(overview, started_at=None).seconds is None
    assert replace(overview, finished_at=None).seconds is None
