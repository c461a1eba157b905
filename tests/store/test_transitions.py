"""Guarded transitions: the loser of a race gets "nothing to do" and touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from headway.domain.execution import Ended, Execution, ExecutionState, Failure, FailureCode, Outcome
from headway.domain.refusals import pause_after
from headway.errors import IllegalTransition
from headway.store import delays, executions, outcomes, work_queue
from headway.store.engine import Store
from headway.store.executions import Progress
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from tests.store.factories import (
    COMPLETED,
    FAILED,
    ME,
    NOBODY,
    NOON,
    OTHER,
    Clock,
    declare,
    dispatched,
    everything,
    finish,
    queue,
    rows_of,
    started,
)

Ending = Callable[[Transaction, Execution], Sequence[Execution | Ended]]


def write(store: Store, act: Callable[[Transaction], Any]) -> Any:
    with store.writing() as tx:
        return act(tx)


def nothing_to_do(store: Store, act: Callable[[Transaction], Any], answer: Any) -> None:
    """*act* has lost its race: it says so and leaves every row as it was."""
    before = everything(store)
    assert write(store, act) == answer
    assert everything(store) == before


def find(store: Store, execution_id: int) -> Execution:
    with store.reading() as tx:
        found = executions.find(tx, execution_id)
    assert found is not None
    return found


ENDINGS: dict[str, Ending] = {
    "finished": lambda tx, one: outcomes.finish(tx, ME, {one.id: COMPLETED}),
    "failed": lambda tx, one: outcomes.finish(tx, ME, {one.id: FAILED}),
    "handed back": lambda tx, one: outcomes.hand_back(tx, ME, [one.id]),
    "reaped": lambda tx, one: outcomes.fail_stale_in_progress(tx, [one.id]),
}


@pytest.mark.parametrize("loser", ENDINGS)
@pytest.mark.parametrize("winner", ENDINGS)
def test_a_run_ends_once(store: Store, winner: str, loser: str) -> None:
    declare(store, "extract")
    one = started(store)
    [ended] = write(store, lambda tx: ENDINGS[winner](tx, one))
    found = find(store, one.id)
    assert found.finished_at is not None
    assert ended in (found, found.ended(found.finished_at))
    nothing_to_do(store, lambda tx: ENDINGS[loser](tx, one), [])


@pytest.mark.parametrize("ending", ["finished", "failed", "handed back"])
def test_only_its_owner_ends_a_run(store: Store, ending: str) -> None:
    declare(store, "extract")
    one = started(store, owner=OTHER)
    nothing_to_do(store, lambda tx: ENDINGS[ending](tx, one), [])
    assert finish(store, one, owner=OTHER)[0].state is ExecutionState.COMPLETED


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_never_started_has_no_end(store: Store, ending: str) -> None:
    declare(store, "extract")
    pending = find(store, dispatched(store))
    nothing_to_do(store, lambda tx: ENDINGS[ending](tx, pending), [])


def test_of_many_outcomes_only_ones_own_are_recorded(store: Store) -> None:
    declare(store, "one", "two", "three")
    mine, theirs, lost = (
        started(store, "one"),
        started(store, "two", OTHER),
        started(store, "three"),
    )
    write(store, lambda tx: outcomes.hand_back(tx, ME, [lost.id]))
    ends = {one.id: COMPLETED for one in (mine, theirs, lost)}
    [ended] = write(store, lambda tx: outcomes.finish(tx, ME, ends))
    assert ended.id == mine.id
    assert find(store, theirs.id) == theirs
    assert find(store, lost.id).state is ExecutionState.HANDED_BACK


def test_an_execution_is_claimed_once(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    execution_id = dispatched(store)
    clock.advance(seconds=1)
    claimed = write(store, lambda tx: executions.claim_one(tx, ME, execution_id))
    assert (claimed.owner, claimed.started_at) == (ME, clock.now)
    nothing_to_do(store, lambda tx: executions.claim_one(tx, OTHER, execution_id), None)
    nothing_to_do(store, lambda tx: executions.claim_pending(tx, OTHER, 10, ["work"]), [])


def test_workers_claim_the_best_first_and_only_what_they_know(store: Store) -> None:
    declare(store, "low", "high", "older", "newer")
    low, high = dispatched(store, "low", priority=1), dispatched(store, "high", priority=9)
    older, newer = dispatched(store, "older", priority=5), dispatched(store, "newer", priority=5)
    nothing_to_do(store, lambda tx: executions.claim_pending(tx, ME, 10, ["other"]), [])
    nothing_to_do(store, lambda tx: executions.claim_pending(tx, ME, 10, []), [])
    first = write(store, lambda tx: executions.claim_pending(tx, ME, 3, ["work", "other"]))
    assert [one.id for one in first] == [high, older, newer]
    rest = write(store, lambda tx: executions.claim_pending(tx, ME, 3, ["work"]))
    assert [one.id for one in rest] == [low]


def test_an_entry_is_dispatched_once(store: Store) -> None:
    declare(store, "extract")
    entry = queue(store)
    assert list(write(store, lambda tx: work_queue.dispatch(tx, [entry]))) == [entry]
    nothing_to_do(store, lambda tx: work_queue.dispatch(tx, [entry, NOBODY]), {})


def test_a_cancelled_entry_is_not_dispatched(store: Store) -> None:
    ids = declare(store, "extract", "load")
    cancelled, kept = queue(store, "extract"), queue(store, "load")
    write(store, lambda tx: work_queue.cancel_queued(tx, [ids["extract"]], "not today"))
    assert list(write(store, lambda tx: work_queue.dispatch(tx, [cancelled, kept]))) == [kept]
    nothing_to_do(store, lambda tx: work_queue.cancel_queued(tx, list(ids.values()), "no"), 0)


def test_only_the_owner_of_a_run_notes_its_step(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    one = started(store)
    later = clock.advance(seconds=5)
    assert write(store, lambda tx: executions.note_step(tx, ME, one.id, "load")) == ""
    noted = find(store, one.id)
    assert (noted.running_step, noted.step_started_at) == ("load", later)
    nothing_to_do(store, lambda tx: executions.note_step(tx, OTHER, one.id, "mine"), None)
    finish(store, one)
    nothing_to_do(store, lambda tx: executions.note_step(tx, ME, one.id, "late"), None)


def test_only_the_owner_of_a_run_notes_its_progress(store: Store) -> None:
    declare(store, "one", "two")
    mine, theirs = started(store, "one"), started(store, "two", OTHER)
    reported = {one.id: Progress(0.5, "half") for one in (mine, theirs)}
    write(store, lambda tx: executions.note_progress(tx, ME, reported))
    assert (find(store, mine.id).progress, find(store, theirs.id).progress) == (0.5, None)
    nothing_to_do(store, lambda tx: executions.note_progress(tx, OTHER, {}), None)


def test_a_requested_cancellation_is_heard_at_the_next_step(store: Store) -> None:
    declare(store, "one", "two")
    one, pending = started(store, "one"), dispatched(store, "two")
    ask = lambda tx: executions.request_cancel(tx, [one.id, pending], "timeout")  # noqa: E731
    assert write(store, ask) == [one.id]
    assert write(store, lambda tx: executions.note_step(tx, ME, one.id, "load")) == "timeout"
    nothing_to_do(store, ask, [])
    nothing_to_do(store, lambda tx: executions.request_cancel(tx, [], "why"), [])


def test_only_pending_executions_are_taken_back(store: Store) -> None:
    declare(store, "one", "two")
    running, pending = started(store, "one"), dispatched(store, "two")
    take = lambda tx: outcomes.take_back(tx, [running.id, pending], 5, "no")  # noqa: E731
    assert [one.id for one in write(store, take)] == [pending]
    assert find(store, running.id) == running
    nothing_to_do(store, take, [])


def test_an_execution_whose_entry_is_refused_too_often_fails(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    entry = queue(store)
    for refusals in (1, 2, 3):
        [row] = rows_of(store, queue_table)
        assert (row["id"], row["status"], row["dispatch_attempts"]) == (
            entry,
            "queued",
            refusals - 1,
        )
        [execution_id] = write(store, lambda tx: work_queue.dispatch(tx, [entry])).values()
        with store.writing() as tx:
            [taken] = outcomes.take_back(tx, [execution_id], 3, "is\x00away")
            assert delays.next_scheduled_at(tx) == (
                None if refusals == 3 else clock.now + pause_after(refusals)
            )
    assert rows_of(store, queue_table) == []
    assert taken.state is ExecutionState.FAILED
    assert taken.failure == Failure("DispatchJobs", FailureCode.REFUSED, r"is\x00away")


def test_only_what_nobody_picked_up_in_time_is_stale(store: Store, clock: Clock) -> None:
    declare(store, "old", "running", "new")
    old, running = dispatched(store, "old"), started(store, "running")
    limit = clock.advance(minutes=20)
    new = dispatched(store, "new")
    nothing_to_do(store, lambda tx: outcomes.fail_stale_pending(tx, NOON), [])
    [reaped] = write(store, lambda tx: outcomes.fail_stale_pending(tx, limit))
    assert (reaped.id, reaped.state) == (old, ExecutionState.FAILED)
    assert reaped.failure.type == FailureCode.STALE_PENDING
    assert find(store, new).state is ExecutionState.PENDING
    assert find(store, running.id) == running


def test_a_pending_execution_cannot_complete(store: Store) -> None:
    declare(store, "extract")
    dispatched(store)
    before = everything(store)
    with pytest.raises(IllegalTransition):
        write(
            store,
            lambda tx: outcomes._end(tx, executions.PENDING, lambda row: COMPLETED),
        )
    assert everything(store) == before


def test_what_runs_is_known_by_its_owner_and_its_own_timeout(store: Store) -> None:
    declare(store, "one", "two")
    one, _ = started(store, "one"), started(store, "two", OTHER)
    with store.reading() as tx:
        assert [run.execution_id for run in executions.owned_by_any(tx, [ME])] == [one.id]
        assert [run.execution_id for run in executions.owned_by_any(tx, ["nobody"])] == []
        first, _second = executions.running(tx)
    assert (first.execution_id, first.started_at, first.timeout) == (one.id, NOON, None)


def test_an_outcome_may_hand_a_run_back(store: Store) -> None:
    declare(store, "extract")
    one = started(store)
    finish(store, one, Outcome(ExecutionState.HANDED_BACK))
    assert [row["id"] for row in rows_of(store, queue_table)] == [one.entry_id]
    assert find(store, one.id).finished_at == NOON + timedelta(0)
