"""Who leads, who waits, and that the manager waits for nobody who may be waiting for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Event, Thread
from time import monotonic

import pytest
from sqlalchemy import text

from headway.domain.execution import Execution
from headway.errors import DatabaseUnavailable
from headway.store import executions, manifests, outcomes
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.migrate import migrate
from headway.store.transaction import Transaction
from tests.store.factories import ME, declare, finish, started

PATIENCE = 30


@pytest.fixture
def postgres_store(postgres_url: str) -> Iterator[Store]:
    store = Store(postgres_url)
    migrate(store)
    yield store
    store.close()


def until(store: Store, question: str, **values: object) -> None:
    """Ask the database until it says yes."""
    end = monotonic() + PATIENCE
    with store.listening() as connection:
        while not connection.execute(text(question), values).scalar_one():
            assert monotonic() < end, f"never true: {question}"


def session_of(tx: Transaction) -> int:
    return int(tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def test_a_second_manager_on_postgresql_is_turned_away_at_once(postgres_url: str) -> None:
    stores = [Store(postgres_url) for _ in range(2)]
    try:
        with stores[0].leading(Lock.MANAGE) as leader:
            assert leader is not None
            for _ in range(2):
                with stores[1].leading(Lock.MANAGE) as follower:
                    assert follower is None
            with stores[1].leading(Lock.DISPATCH) as dispatcher:
                assert dispatcher is not None
        with stores[1].leading(Lock.MANAGE) as next_leader:
            assert next_leader is not None
    finally:
        for store in stores:
            store.close()


def test_a_second_manager_on_sqlite_waits_for_the_first(sqlite_url: str) -> None:
    stores = [Store(sqlite_url) for _ in range(2)]
    happened: list[str] = []
    asking = Event()

    def lead_after() -> None:
        asking.set()
        with stores[1].leading(Lock.MANAGE) as follower:
            assert follower is not None
            happened.append("the second leads")

    with stores[0].leading(Lock.MANAGE) as leader:
        assert leader is not None
        other = Thread(target=lead_after)
        other.start()
        assert asking.wait(30)
        happened.append("the first is done")
    other.join(30)
    for store in stores:
        store.close()
    assert happened == ["the first is done", "the second leads"]


def test_who_waits_for_a_lock_has_it_next_and_is_told_when(postgres_url: str) -> None:
    stores = [Store(postgres_url) for _ in range(2)]
    led_at: list[datetime] = []
    timeouts: list[str] = []

    def lead_after() -> None:
        with stores[1].leading(Lock.DISPATCH, patience=7, wait=True) as follower:
            assert follower is not None
            led_at.append(follower.now)
            timeouts.append(follower.connection.execute(text("SHOW lock_timeout")).scalar_one())

    with stores[0].leading(Lock.DISPATCH) as leader:
        assert leader is not None
        other = Thread(target=lead_after)
        other.start()
        waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
        until(stores[0], waits)
        left_at = leader.connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    other.join(PATIENCE)
    for store in stores:
        store.close()
    assert led_at[0] > left_at, "not when it began to wait"
    assert timeouts == ["7s"], "what follows has the patience it asked for"


def test_who_waits_in_vain_for_a_lock_does_nothing(postgres_url: str) -> None:
    stores = [Store(postgres_url) for _ in range(2)]
    with (
        stores[0].leading(Lock.DISPATCH),
        stores[1].leading(Lock.DISPATCH, wait=True) as follower,
    ):
        assert follower is None
    with stores[1].leading(Lock.DISPATCH) as next_leader:
        assert next_leader is not None
    for store in stores:
        store.close()


@pytest.mark.story(27)
def test_a_stopped_leader_is_ended_by_the_server_and_cannot_write(postgres_store: Store) -> None:
    def lead_and_stop() -> None:
        with postgres_store.leading(Lock.MANAGE, seconds=1) as leader:
            assert leader is not None
            gone = "SELECT NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = :pid)"
            until(postgres_store, gone, pid=session_of(leader))
            leader.connection.execute(text("CREATE TABLE written_by_a_zombie (id int)"))

    with pytest.raises(DatabaseUnavailable):
        lead_and_stop()
    with postgres_store.leading(Lock.MANAGE) as next_leader:
        assert next_leader is not None


def test_the_timeouts_of_a_leader_end_with_its_transaction(postgres_store: Store) -> None:
    shown = text("SELECT current_setting('statement_timeout')")
    with postgres_store.leading(Lock.MANAGE, seconds=3) as leader:
        assert leader is not None
        pid = session_of(leader)
        assert leader.connection.execute(shown).scalar_one() == "3s"
    with postgres_store.writing() as tx:
        assert session_of(tx) == pid
        assert tx.connection.execute(shown).scalar_one() == "0"


REAPERS: dict[str, Callable[[Transaction, Execution], object]] = {
    "reaped": lambda tx, one: outcomes.fail_stale_in_progress(tx, [one.id]),
    "cancelled": lambda tx, one: executions.request_cancel(tx, [one.id], "timeout", wait=False),
}


@pytest.mark.parametrize("verb", REAPERS)
def test_the_manager_waits_for_no_run_that_is_just_ending(postgres_store: Store, verb: str) -> None:
    # Whoever finishes holds the run and waits for its state, which the manager holds.
    declare(postgres_store, "extract")
    one = started(postgres_store)
    with ThreadPoolExecutor(1) as pool:
        with postgres_store.leading(Lock.MANAGE) as manager:
            assert manager is not None
            assert manifests.due_candidates(manager, 10) == [one.manifest_id]
            finishing = pool.submit(finish, postgres_store, one)
            waiting = (
                "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE :pid = ANY (pg_blocking_pids(pid)))"
            )
            until(postgres_store, waiting, pid=session_of(manager))
            assert REAPERS[verb](manager, one) == []
        [ended] = finishing.result(PATIENCE)
    assert (ended.state, ended.owner) == ("completed", ME)


def test_a_cancellation_asked_for_by_a_person_waits_its_turn(postgres_store: Store) -> None:
    declare(postgres_store, "extract")
    one = started(postgres_store)

    def cancel() -> list[int]:
        with postgres_store.writing() as tx:
            return executions.request_cancel(tx, [one.id], "please")

    with ThreadPoolExecutor(1) as pool:
        with postgres_store.writing() as tx:
            executions.note_step(tx, ME, one.id, "load")
            asking = pool.submit(cancel)
            waiting = (
                "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE :pid = ANY (pg_blocking_pids(pid)))"
            )
            until(postgres_store, waiting, pid=session_of(tx))
        assert asking.result(PATIENCE) == [one.id]


def test_who_only_reads_cannot_write(store: Store) -> None:
    declare(store, "extract")
    with pytest.raises(DatabaseUnavailable, match=r"read-?only"), store.reading() as tx:
        tx.connection.execute(text("DELETE FROM headway_wake"))
    started(store)


def test_readers_wait_for_no_writer(store: Store) -> None:
    declare(store, "extract")
    one = started(store)
    with store.writing() as tx:
        assert outcomes.hand_back(tx, ME, [one.id])
        with store.reading() as reader:
            assert [run.execution_id for run in executions.owned_by_any(reader, [ME])] == [one.id]
