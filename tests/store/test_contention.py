"""Many threads in several processes' worth of stores: everyone waits, nobody is turned away."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event

from headway.domain.work_queue import NewEntry, Source
from headway.store import executions, outcomes, work_queue
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.reading.executions import list_executions
from headway.store.tables import execution, execution_history
from headway.store.tables import work_queue as queue_table
from tests.builders import PATIENCE
from tests.store.factories import COMPLETED, at_once, rows_of

THREADS = 8
JOBS = 12


@pytest.fixture
def stores(database_url: str) -> Iterator[list[Store]]:
    stores = [Store(database_url) for _ in range(2)]
    migrate(stores[0])
    yield stores
    for store in stores:
        store.close()


def work_through(store: Store, owner: str, jobs: int = JOBS) -> int:
    """Queue, dispatch, claim and finish as a server does, and read in between."""
    done = 0
    for _ in range(jobs):
        with store.writing() as tx:
            work_queue.enqueue(tx, [NewEntry("work", Source.AD_HOC, "null")])
        with store.writing() as tx:
            ready = work_queue.dispatchable(tx, None, 3)
            work_queue.dispatch(tx, [entry.id for entry in ready])
        with store.reading() as tx:
            list_executions(tx, limit=5)
        with store.writing() as tx:
            claimed = executions.claim_pending(tx, owner, 3, ["work"])
        with store.writing() as tx:
            done += len(outcomes.finish(tx, owner, {one.id: COMPLETED for one in claimed}))
    return done


@pytest.mark.story(45)
def test_eight_threads_in_two_stores_lose_nothing_and_see_no_lock(stores: list[Store]) -> None:
    owners = [f"worker-{number}" for number in range(THREADS)]
    done = at_once(
        *(partial(work_through, stores[number % 2], owner) for number, owner in enumerate(owners))
    )
    left = len(rows_of(stores[0], queue_table)) + len(rows_of(stores[0], execution))
    assert sum(done) == len(rows_of(stores[0], execution_history))
    assert sum(done) + left == THREADS * JOBS


def test_a_reader_sees_only_what_is_committed(stores: list[Store]) -> None:
    with stores[0].writing() as tx:
        work_queue.enqueue(tx, [NewEntry("work", Source.AD_HOC, "null")])
        assert rows_of(stores[1], queue_table) == []
    assert len(rows_of(stores[1], queue_table)) == 1


def test_a_failed_transaction_leaves_nothing_and_the_store_usable(stores: list[Store]) -> None:
    def queue_and_fail() -> None:
        with stores[0].writing() as tx:
            work_queue.enqueue(tx, [NewEntry("work", Source.AD_HOC, "null")])
            raise RuntimeError("changed my mind")

    for _ in range(10):
        with pytest.raises(RuntimeError):
            queue_and_fail()
    assert rows_of(stores[0], queue_table) == []
    assert work_through(stores[0], "worker") == JOBS


def test_who_opens_a_new_file_waits_for_another_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "headway.db"
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        other.rollback()

    monkeypatch.setattr(time, "sleep", wait)
    store = Store(f"sqlite:///{file}")
    migrate(store)
    store.close()
    other.close()

    assert len(waits) == 1


def test_writers_of_one_process_take_turns_on_a_file(tmp_path: Path) -> None:
    """The second does not even ask SQLite, which would let it wait in ever longer pauses."""
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    first, second = Store(url), Store(url)
    migrate(first)
    began: list[str] = []
    event.listen(
        second._writer,
        "before_cursor_execute",
        lambda _c, _u, statement, *_: began.append(statement),
    )

    def write() -> None:
        with second.writing():
            pass

    with first.writing():
        waiting = threading.Thread(target=write)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive() and began == []
    waiting.join(PATIENCE)
    assert began[:1] == ["BEGIN IMMEDIATE"]

    with pytest.raises(RuntimeError), first.writing():
        raise RuntimeError("no")
    with second.writing():
        pass
    first.close()
    second.close()
