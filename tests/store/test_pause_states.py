"""What real life leaves behind: with the fact, once, and no statement where nothing is left."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import delete, update

from headway.domain.azolla.artifacts import PauseReason
from headway.domain.azolla.pausing import ACTION_LIMIT, Pause
from headway.domain.execution import ExecutionState, Failure, FailureCode, Outcome
from headway.store import dead_letters, executions, objectives, outcomes, pause_states, work_queue
from headway.store.dead_letters import NewDeadLetter
from headway.store.engine import Store
from headway.store.outcomes import TIMEOUT
from headway.store.tables import execution, objective, pause_state
from tests.statements import sent_statements
from tests.store.factories import (
    CANCELLED,
    COMPLETED,
    FAILED,
    ME,
    NOON,
    dead_letter_for,
    declare,
    dispatched,
    finish,
    manifest_ids,
    queue_ad_hoc,
    ran,
    rows_of,
    started,
)

TIMED_OUT = Outcome(
    ExecutionState.FAILED, Failure("load", FailureCode.JOB_TIMEOUT, "ran longer than its timeout")
)
HANDED_OVER = Outcome(ExecutionState.COMPLETED, hand_over=("check the figures", "publish them"))


@pytest.fixture
def deployment(store: Store) -> Store:
    """A store of a deployment that was started, with a manifest."""
    with store.writing() as tx:
        objectives.ensure_standing(tx, "warehouse", "warehouse")
    declare(store, "extract")
    return store


def pauses(store: Store) -> list[tuple[str, list[str]]]:
    return [
        (row["reason"], json.loads(row["prioritized_actions"]))
        for row in rows_of(store, pause_state)
    ]


def test_a_dead_letter_leaves_one(deployment: Store) -> None:
    ran(deployment, outcome=FAILED)
    dead_letter_for(deployment)
    [row] = rows_of(deployment, pause_state)
    assert (row["objective_id"], row["azolla_id"], row["created_at"]) == (
        "standing",
        "warehouse",
        NOON,
    )
    [(reason, actions)] = pauses(deployment)
    assert reason == PauseReason.GATE_FAILED
    assert actions[0].startswith("look at dead letter ")
    assert actions[0].endswith(" of extract: ValueError: no rows")
    assert "requeue" in actions[1]
    assert len(actions) == 3


def test_a_dead_letter_that_stands_already_leaves_no_second(deployment: Store) -> None:
    ran(deployment, outcome=FAILED)
    dead_letter_for(deployment)
    dead_letter_for(deployment)
    assert len(pauses(deployment)) == 1


def test_a_dead_letter_without_any_run_on_record_says_why_it_is_there(deployment: Store) -> None:
    dead_letter_for(deployment)
    [(_, actions)] = pauses(deployment)
    assert actions[0].endswith(": max retries exceeded")


def test_a_job_that_kills_its_workers_leaves_one(deployment: Store) -> None:
    started(deployment, owner="gone")
    with deployment.writing() as tx:
        _, hopeless = outcomes.end_orphans(tx, max_crashes=1)
    assert len(hopeless) == 1
    [(reason, actions)] = pauses(deployment)
    assert reason == PauseReason.GATE_FAILED
    assert actions[0].endswith(" of extract: WorkerLost: its worker gone is gone")


def test_a_run_that_timed_out_leaves_one(deployment: Store) -> None:
    ended = ran(deployment, outcome=TIMED_OUT)
    [(reason, actions)] = pauses(deployment)
    assert reason == PauseReason.BUDGET_EXHAUSTED
    assert actions == [
        f"see why run {ended.id} of extract took so long in load: ran longer than its timeout",
        "split its work, or raise the timeout of extract",
    ]


def test_a_run_without_a_manifest_is_named_by_its_workflow(deployment: Store) -> None:
    entry = queue_ad_hoc(deployment)
    with deployment.writing() as tx:
        one = executions.claim_one(tx, ME, work_queue.dispatch(tx, [entry])[entry])
    assert one is not None
    finish(deployment, one, TIMED_OUT)
    [(_, actions)] = pauses(deployment)
    assert "of ad-hoc work took" in actions[0]
    assert actions[1] == "split its work, or raise default_job_timeout"


def test_a_timed_out_run_whose_worker_is_gone_leaves_one(deployment: Store) -> None:
    one = started(deployment, owner="gone")
    with deployment.writing() as tx:
        executions.request_cancel(tx, [one.id], TIMEOUT)
    with deployment.writing() as tx:
        outcomes.end_orphans(tx, max_crashes=3)
    [(reason, _)] = pauses(deployment)
    assert reason == PauseReason.BUDGET_EXHAUSTED


def test_a_run_that_was_given_up_leaves_one(deployment: Store) -> None:
    one = started(deployment)
    with deployment.writing() as tx:
        outcomes.fail_stale_in_progress(tx, [one.id])
    [(reason, actions)] = pauses(deployment)
    assert reason == PauseReason.BUDGET_EXHAUSTED
    assert "did not end within stale_in_progress_timeout" in actions[0]


def test_what_nobody_picked_up_ran_out_of_nothing(deployment: Store) -> None:
    dispatched(deployment)
    with deployment.writing() as tx:
        failed = outcomes.fail_stale_pending(tx, NOON + timedelta(seconds=1))
    assert len(failed) == 1
    assert pauses(deployment) == []


def test_a_timeout_that_a_person_has_cancelled_leaves_none(deployment: Store) -> None:
    one = started(deployment)
    with deployment.writing() as tx:
        executions.request_cancel(tx, [one.id], "not needed")
    [ended] = finish(deployment, one, TIMED_OUT)
    assert ended.state is ExecutionState.CANCELLED
    assert pauses(deployment) == []


def test_a_completed_run_that_asked_for_it_leaves_one(deployment: Store) -> None:
    ran(deployment, outcome=HANDED_OVER)
    assert pauses(deployment) == [
        (PauseReason.RUN_COMPLETE, ["extract: check the figures", "extract: publish them"])
    ]


def test_a_run_that_asked_for_it_and_did_not_complete_leaves_none(deployment: Store) -> None:
    for outcome in (FAILED, CANCELLED):
        ran(deployment, outcome=outcome._replace(hand_over=("check the figures",)))
    assert pauses(deployment) == []


def test_a_run_that_is_no_longer_ours_leaves_none(deployment: Store) -> None:
    one = started(deployment, owner="another")
    assert finish(deployment, one, HANDED_OVER, owner=ME) == []
    assert pauses(deployment) == []


def test_what_ends_otherwise_leaves_none_and_costs_no_statement(deployment: Store) -> None:
    with sent_statements() as sent:
        for outcome in (COMPLETED, FAILED, CANCELLED):
            ran(deployment, outcome=outcome)
    assert pauses(deployment) == []
    assert [text for _, text in sent if "pause_state" in text] == []


def test_a_whole_batch_is_one_statement(deployment: Store) -> None:
    names = [f"job-{number}" for number in range(20)]
    declare(deployment, *names)
    running = [started(deployment, name) for name in names]
    with deployment.writing() as tx, sent_statements() as sent:
        outcomes.finish(tx, ME, {one.id: HANDED_OVER for one in running})
    assert len([text for _, text in sent if "headway_pause_state" in text]) == 1
    assert len(pauses(deployment)) == 20


def test_many_dead_letters_are_one_statement(deployment: Store) -> None:
    names = [f"job-{number}" for number in range(20)]
    ids = declare(deployment, *names)
    letters = [NewDeadLetter(ids[name], "hopeless", 3) for name in names]
    with deployment.writing() as tx, sent_statements() as sent:
        dead_letters.create(tx, letters)
    assert len([text for _, text in sent if "headway_pause_state" in text]) == 1
    assert len(pauses(deployment)) == 20


def test_without_a_standing_objective_nothing_is_left_and_nothing_fails(store: Store) -> None:
    declare(store, "extract")
    ran(store, outcome=HANDED_OVER)
    ran(store, outcome=TIMED_OUT)
    dead_letter_for(store)
    assert pauses(store) == []
    assert manifest_ids(store)


def test_the_same_pause_is_written_once(deployment: Store) -> None:
    pause = Pause("p1", PauseReason.RUN_COMPLETE, ("look",))
    for _ in range(2):
        with deployment.writing() as tx:
            pause_states.leave(tx, [pause])
    assert len(pauses(deployment)) == 1


def test_it_goes_with_the_transaction_of_the_fact(deployment: Store) -> None:
    one = started(deployment)

    class Undone(Exception):
        pass

    with pytest.raises(Undone), deployment.writing() as tx:
        outcomes.finish(tx, ME, {one.id: HANDED_OVER})
        raise Undone
    assert pauses(deployment) == []
    assert len(rows_of(deployment, execution)) == 1


def test_whatever_a_job_says_fits_and_can_be_shown(deployment: Store) -> None:
    wild = "\x1b[31m\x00\ud800\n\n" + "x" * 100_000
    outcome = Outcome(ExecutionState.COMPLETED, hand_over=(wild,))
    ran(deployment, outcome=outcome)
    [(_, [action])] = pauses(deployment)
    assert len(action) <= ACTION_LIMIT
    assert action.isprintable()
    assert action.startswith(r"extract: \x1b[31m\x00\ud800 xxx")


def test_it_takes_the_id_the_deployment_has_at_that_moment(deployment: Store) -> None:
    with deployment.writing() as tx:
        tx.connection.execute(update(objective).values(azolla_id="renamed"))
    ran(deployment, outcome=HANDED_OVER)
    assert [row["azolla_id"] for row in rows_of(deployment, pause_state)] == ["renamed"]
    with deployment.writing() as tx:
        tx.connection.execute(delete(objective))
    ran(deployment, outcome=HANDED_OVER)
    assert len(pauses(deployment)) == 1
