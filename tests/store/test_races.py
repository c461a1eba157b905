"""Real connections at the same moment: every race has exactly one winner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select, text

from headway.domain.execution import Execution, Outcome
from headway.domain.manifest import Manifest
from headway.domain.schedule import Never
from headway.domain.work_queue import NewEntry, Source
from headway.errors import CircularDependencyError
from headway.store import declarations, executions, outcomes, wakes, work_queue
from headway.store.engine import Store
from headway.store.tables import dependency, execution, execution_history, manifest_state, wake
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from headway.store.wakes import Scope
from tests.builders import PATIENCE, eventually
from tests.store.factories import (
    COMPLETED,
    FAILED,
    ME,
    Clock,
    a_declaration,
    a_manifest,
    at_once,
    declare,
    entry_for,
    finish,
    manifest_ids,
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


# What two transactions hold and wait for; SQLite has one writer at a time


@pytest.fixture
def postgres(emptied_postgres_url: str, clock: Clock) -> Iterator[Store]:
    store = Store(emptied_postgres_url, clock=clock, durable=False)
    yield store
    store.close()


@pytest.fixture
def rival(emptied_postgres_url: str, clock: Clock) -> Iterator[Store]:
    """Another server's store on the same database, with connections of its own."""
    store = Store(emptied_postgres_url, clock=clock, durable=False)
    yield store
    store.close()


@contextmanager
def waiting(store: Store, *acts: Callable[[], Any]) -> Iterator[list[Future[Any]]]:
    """Each of *acts* in a thread of its own, once all of them wait for a lock."""
    waits = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def count() -> int:
        with store.reading() as tx:
            return int(tx.connection.execute(waits).scalar_one())

    pool = ThreadPoolExecutor(len(acts))
    try:
        begun = [pool.submit(act) for act in acts]
        eventually(lambda: count() == len(acts), patience=20.0)
        yield begun
    finally:
        pool.shutdown(wait=False)  # what they wait for is given up only after this


def upsert(store: Store, *items: Manifest) -> None:
    with store.writing() as tx:
        declarations.upsert(tx, a_declaration(*items))


def after(name: str, *parents: str, **changes: Any) -> Manifest:
    return a_manifest(name, schedule=Never(), parents=parents, **changes)


def test_of_two_builders_that_close_a_cycle_together_the_second_is_refused(
    postgres: Store, rival: Store
) -> None:
    """It waits before it writes anything: the first may still change the same manifest."""
    declare(postgres, after("extract"), after("load"))

    with postgres.writing() as tx:
        declarations.upsert(tx, a_declaration(after("load", "extract")))
        with waiting(postgres, partial(upsert, rival, after("extract", "load"))) as [other]:
            declarations.upsert(tx, a_declaration(after("extract", input="7")))
            tx.connection.commit()
            with pytest.raises(CircularDependencyError):
                other.result(PATIENCE)
    assert edges_of(postgres) == {("load", "extract")}


def edges_of(store: Store) -> set[tuple[str, str]]:
    names = {key: name for name, key in manifest_ids(store).items()}
    rows = rows_of(store, dependency)
    return {(names[row["child_id"]], names[row["parent_id"]]) for row in rows}


def test_two_builders_that_create_the_same_in_opposite_order_do_not_deadlock(
    postgres: Store, rival: Store
) -> None:
    declare(postgres, "first")
    names = [f"extract-{number}" for number in range(3)]
    items = [a_manifest(name) for name in names]

    with pytest.raises(RuntimeError), postgres.writing() as tx:
        declarations.upsert(tx, a_declaration(items[1]))
        forth, back = (partial(upsert, rival, *some) for some in (items, items[::-1]))
        with waiting(postgres, forth, back) as builders:
            tx.connection.rollback()
            for one in builders:
                one.result(PATIENCE)
            raise RuntimeError("rolled back")
    assert set(manifest_ids(postgres)) == {"first", *names}


def test_batches_that_end_the_same_runs_differently_do_not_deadlock(
    postgres: Store, rival: Store
) -> None:
    """A batch of completions and failures touches its executions by two statements."""
    declare(postgres, "extract", "load")
    one, other = (started(postgres, name) for name in ("extract", "load"))

    def end(how: dict[int, Outcome]) -> list[int]:
        with rival.writing() as tx:
            return [ended.id for ended in outcomes.finish(tx, ME, how)]

    def held(tx: Transaction) -> None:
        tx.connection.execute(select(manifest_state).with_for_update()).all()

    with postgres.writing() as tx:
        held(tx)
        forth = partial(end, {one.id: COMPLETED, other.id: FAILED})
        back = partial(end, {one.id: FAILED, other.id: COMPLETED})
        with waiting(postgres, forth, back) as batches:
            tx.connection.commit()
            ended = [batch.result(PATIENCE) for batch in batches]
    assert sorted(ended) == [[], [one.id, other.id]]
