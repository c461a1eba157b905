"""Real connections at the same moment: every race has exactly one winner."""

from __future__ import annotations

from functools import partial

from headway.domain.execution import Execution
from headway.domain.work_queue import NewEntry, Source
from headway.store import executions, outcomes, wakes, work_queue
from headway.store.engine import Store
from headway.store.tables import execution, execution_history, wake
from headway.store.tables import work_queue as queue_table
from headway.store.wakes import Scope
from tests.store.factories import (
    COMPLETED,
    ME,
    at_once,
    declare,
    entry_for,
    finish,
    queue,
    rows_of,
    started,
    state_of,
)

ROUNDS = 15


def claim(store: Store, owner: str, limit: int) -> list[Execution]:
    """Claim until nothing is left."""
    claimed: list[Execution] = []
    while True:
        with store.writing() as tx:
            batch = executions.claim_pending(tx, owner, limit, ["work"])
        if not batch:
            return claimed
        claimed += batch


def test_each_pending_execution_is_claimed_by_exactly_one_of_many(
    store: Store, second: Store
) -> None:
    with store.writing() as tx:
        entries = [NewEntry("work", Source.AD_HOC, "null") for _ in range(120)]
        work_queue.dispatch(tx, work_queue.enqueue(tx, entries))
    owners = [f"worker-{number}" for number in range(6)]
    claims = at_once(
        *(partial(claim, (store, second)[n % 2], owner, 7) for n, owner in enumerate(owners))
    )
    claimed = [one.id for batch in claims for one in batch]
    assert len(claimed) == len(set(claimed)) == 120
    held = {row["id"]: row["owner"] for row in rows_of(store, execution)}
    for owner, batch in zip(owners, claims, strict=True):
        assert {held[one.id] for one in batch} <= {owner}


def test_one_entry_is_dispatched_by_exactly_one_of_two(store: Store, second: Store) -> None:
    declare(store, "extract")

    def dispatch(from_store: Store, entry: int) -> dict[int, int]:
        with from_store.writing() as tx:
            return work_queue.dispatch(tx, [entry])

    for _ in range(ROUNDS):
        entry = queue(store)
        won = at_once(partial(dispatch, store, entry), partial(dispatch, second, entry))
        assert sorted(map(len, won)) == [0, 1]
        [live] = rows_of(store, execution)
        assert live["entry_id"] == entry
        [one] = claim(store, ME, 1)
        finish(store, one)


def test_of_two_automatic_entries_queued_at_once_one_stays(store: Store, second: Store) -> None:
    key = declare(store, "extract")["extract"]

    def enqueue(to_store: Store) -> list[int]:
        with to_store.writing() as tx:
            return work_queue.enqueue(tx, [entry_for(tx, "extract")])

    for _ in range(ROUNDS):
        queued = at_once(partial(enqueue, store), partial(enqueue, second))
        assert sorted(map(len, queued)) == [0, 1]
        with store.writing() as tx:
            assert work_queue.cancel_queued(tx, [key], "next round") == 1


def test_a_run_that_ends_while_it_is_reaped_has_one_end(store: Store, second: Store) -> None:
    declare(store, "extract")

    def reap(one: Execution) -> list[Execution]:
        with second.writing() as tx:
            return outcomes.fail_stale_in_progress(tx, [one.id])

    completed = 0
    for _ in range(2 * ROUNDS):
        one = started(store)
        won, reaped = at_once(partial(finish, store, one), partial(reap, one))
        assert len(won) + len(reaped) == 1
        completed += len(won)
        record = rows_of(store, execution_history)[-1]
        assert (record["id"], record["state"]) == (one.id, "completed" if won else "failed")
    assert state_of(store).success_seq == completed
    assert rows_of(store, execution) == []


def test_a_run_handed_back_while_it_ends_is_queued_or_done_but_not_both(
    store: Store, second: Store
) -> None:
    declare(store, "extract")

    def hand_back(one: Execution) -> list[Execution]:
        with second.writing() as tx:
            return outcomes.hand_back(tx, ME, [one.id])

    for _ in range(ROUNDS):
        one = started(store, source=Source.TRIGGER)
        won, handed_back = at_once(partial(finish, store, one), partial(hand_back, one))
        assert len(won) + len(handed_back) == 1
        assert [row["id"] for row in rows_of(store, queue_table)] == [
            ended.entry_id for ended in handed_back
        ]
        with store.writing() as tx:
            tx.connection.execute(queue_table.delete())


def test_batches_that_end_in_opposite_order_do_not_deadlock(store: Store, second: Store) -> None:
    names = [f"extract-{number}" for number in range(20)]
    declare(store, *names)

    def end(in_store: Store, mine: list[Execution]) -> int:
        with in_store.writing() as tx:
            return len(outcomes.finish(tx, ME, {one.id: COMPLETED for one in mine}))

    for _ in range(3):
        running = [started(store, name) for name in names]
        ended = at_once(partial(end, store, running), partial(end, second, running[::-1]))
        assert sorted(ended) == [0, 20]


def test_wakes_left_while_the_inbox_is_read_are_not_lost(store: Store, second: Store) -> None:
    key = declare(store, "extract")["extract"]

    def leave() -> int:
        for _ in range(50):
            with store.writing() as tx:
                wakes.leave_wakes(tx, [(key, Scope.SELF)])
        return 0

    def absorb() -> int:
        taken = 0
        for _ in range(50):
            with second.writing() as tx:
                taken += wakes.absorb_wakes(tx, 10)
        return taken

    taken = sum(at_once(leave, absorb))
    assert taken + len(rows_of(store, wake)) == 50
