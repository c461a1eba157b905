"""A run that had begun is handed back free of charge, but not without end."""

from __future__ import annotations

import pytest

from headway.domain.attempts import MOST_HAND_BACKS
from headway.domain.execution import Execution, ExecutionState, FailureCode, Outcome
from headway.store import dead_letters, executions, outcomes, work_queue
from headway.store.engine import Store
from headway.store.hand_backs import Charge
from headway.store.tables import work_queue as queue_table
from tests.store.factories import FAILED, ME, declare, queue, queue_ad_hoc, rows_of

FIRST_STEPS = {"work": "load"}
HANDED_BACK = Outcome(ExecutionState.HANDED_BACK)
NOT_BEGUN = Outcome(ExecutionState.HANDED_BACK, steps=())
WAYS = {"by its worker": True, "by its run": False}


def claimed(store: Store) -> Execution:
    """Dispatch and claim the only entry; the worker has begun what had crashed before."""
    with store.writing() as tx:
        [entry] = rows_of_queue(store)
        work_queue.dispatch(tx, [entry])
        [one] = executions.claim_pending(tx, ME, 1, ["work"], FIRST_STEPS)
        executions.note_step(tx, ME, one.id, "load")
    return one


def rows_of_queue(store: Store) -> list[int]:
    return [row["id"] for row in rows_of(store, queue_table) if row["status"] == "queued"]


def hand_back(store: Store, charge: Charge, *, by_worker: bool = True) -> Execution:
    one = claimed(store)
    with store.writing() as tx:
        if by_worker:
            assert outcomes.hand_back(tx, ME, [one.id], charge)
        else:
            outcomes.finish(tx, ME, {one.id: HANDED_BACK}, charge=charge)
    with store.reading() as tx:
        found = executions.find(tx, one.id)
    assert found is not None
    return found


def spent(store: Store, charge: Charge, times: int = MOST_HAND_BACKS) -> None:
    """Hand the entry back as often as is free."""
    for _ in range(times):
        assert hand_back(store, charge).state is ExecutionState.HANDED_BACK


@pytest.mark.parametrize("by_worker", WAYS.values(), ids=WAYS)
def test_after_twenty_in_a_row_the_next_counts_as_a_lost_worker(
    store: Store, by_worker: bool
) -> None:
    declare(store, "extract")
    entry, charge = queue(store), Charge(3)
    spent(store, charge)

    run = hand_back(store, charge, by_worker=by_worker)

    assert run.state is ExecutionState.FAILED and run.failure is not None
    assert (run.failure.step, run.failure.type) == ("load", FailureCode.WORKER_LOST)
    assert run.failure.message == (
        "was begun and handed back 21 times in a row: each time its worker stopped or lost its "
        "lease; this counts as a lost worker"
    )
    [row] = rows_of(store, queue_table)
    assert (row["id"], row["crashes"], row["attempts"]) == (entry, 1, 0)
    assert charge.dead_lettered == []


def test_a_charge_begins_the_count_again_and_the_last_becomes_a_dead_letter(store: Store) -> None:
    declare(store, "extract")
    queue(store)
    charge = Charge(2)
    for _ in range(2):
        spent(store, charge)
        last = hand_back(store, charge)

    assert [one.id for one in charge.dead_lettered] == [last.id]
    assert rows_of(store, queue_table) == []
    with store.reading() as tx:
        [letter] = dead_letters.awaiting(tx)
    told = "its job was charged with 2 lost workers, the last for being handed back too often"
    assert (letter.reason, letter.failures) == (told, 2)


def test_a_run_without_a_manifest_has_failed_for_good(store: Store) -> None:
    queue_ad_hoc(store)
    charge = Charge(1)
    spent(store, charge)

    assert hand_back(store, charge).state is ExecutionState.FAILED
    assert rows_of(store, queue_table) == [] and charge.dead_lettered == []


def test_a_failure_in_between_begins_the_count_again(store: Store) -> None:
    queue_ad_hoc(store, max_attempts=2)
    charge = Charge(1)
    spent(store, charge)
    one = claimed(store)
    with store.writing() as tx:
        assert outcomes.finish(tx, ME, {one.id: FAILED}, charge=charge)

    spent(store, charge)


def test_what_had_not_begun_is_not_counted(store: Store) -> None:
    declare(store, "extract")
    queue(store)
    charge = Charge(1)
    spent(store, charge, MOST_HAND_BACKS - 1)
    for _ in range(3):
        one = claimed(store)
        with store.writing() as tx:
            outcomes.finish(tx, ME, {one.id: NOT_BEGUN}, charge=charge)
    for _ in range(3):
        with store.writing() as tx:
            dispatched = work_queue.dispatch(tx, rows_of_queue(store))
            outcomes.take_back(tx, dispatched.values(), 1000, "no route")

    assert hand_back(store, charge).state is ExecutionState.HANDED_BACK
    assert hand_back(store, charge).state is ExecutionState.FAILED
