"""The ways into the database: who may write, what is kept, who is told, and by which clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from headway.domain.work_queue import NewEntry, Source
from headway.errors import DatabaseUnavailable, HeadwayError
from headway.store import work_queue
from headway.store.bells import hang
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.marks import read_mark, write_mark
from headway.store.migrate import migrate
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from headway.store.urls import shown
from tests.store.factories import Clock, rows_of

Opening = Callable[[Store], AbstractContextManager[Transaction | None]]
READING: dict[str, Opening] = {
    "reading": lambda store: store.reading(),
    "picturing": lambda store: store.picturing(),
    "unclocked": lambda store: store.unclocked(),
}
WRITING: dict[str, Opening] = {
    "writing": lambda store: store.writing(),
    "with a hint": lambda store: store.writing("dispatcher"),
    "queueing": lambda store: store.queueing("dispatcher"),
    "briefly": lambda store: store.briefly(),
    "unclocked": lambda store: store.unclocked(writing=True),
    "leading": lambda store: store.leading(Lock.MANAGE),
    "waiting to lead": lambda store: store.leading(Lock.APPLY, wait=True),
}


def mark_of(store: Store) -> str | None:
    with store.reading() as tx:
        return read_mark(tx, "fact")


def mark(opened: AbstractContextManager[Transaction | None], *, fails: bool = False) -> None:
    with opened as tx:
        assert tx is not None
        write_mark(tx, "fact", "known")
        if fails:
            raise ArithmeticError


@pytest.mark.parametrize("way", [*READING.values(), *WRITING.values()])
def test_every_way_shows_the_clock_the_store_was_given(
    store: Store, clock: Clock, way: Opening
) -> None:
    clock.advance(days=400)
    with way(store) as tx:
        assert tx is not None
        assert (tx.now, tx.joined, tx.ticking) == (clock.now, False, False)
    assert not store.is_ticking


@pytest.mark.parametrize("way", READING)
def test_who_reads_cannot_write(store: Store, way: str) -> None:
    with pytest.raises((HeadwayError, DBAPIError), match=r"readonly|read-only"):
        mark(READING[way](store))
    assert mark_of(store) is None


@pytest.mark.parametrize("way", WRITING)
def test_what_is_written_is_kept_unless_something_fails(store: Store, way: str) -> None:
    with pytest.raises(ArithmeticError):
        mark(WRITING[way](store), fails=True)
    assert mark_of(store) is None
    mark(WRITING[way](store))
    assert mark_of(store) == "known"


@pytest.mark.parametrize("way", ["writing", "queueing"])
def test_listeners_are_told_on_sqlite_once_it_is_kept(sqlite_url: str, way: str) -> None:
    with closing(Store(sqlite_url, durable=False)) as store:
        migrate(store)
        heard: list[tuple[str, str | None]] = []
        end = hang(store.url, lambda topic: heard.append((topic, mark_of(store))))
        opened: Callable[[str], Any] = getattr(store, way)
        with pytest.raises(ArithmeticError):
            mark(opened("dispatcher"), fails=True)
        assert heard == []
        mark(opened("dispatcher"))
        mark(store.writing())
        end()
    assert heard == [("dispatcher", "known")]


def test_one_statement_may_queue_something_under_a_clock(store: Store) -> None:
    with store.queueing("dispatcher") as tx:
        [entry] = work_queue.enqueue(tx, [NewEntry("work", Source.AD_HOC, "null")])
    assert [row["id"] for row in rows_of(store, queue_table)] == [entry]


def test_a_store_apart_has_the_same_clock_and_the_same_database(store: Store, clock: Clock) -> None:
    with closing(store.apart()) as apart, store.reading():
        mark(apart.writing())
        clock.advance(days=3)
        with apart.reading() as tx:
            assert tx.now == clock.now
        assert apart.url == store.url
    assert mark_of(store) == "known"


def test_a_brief_transaction_that_stands_still_is_ended(emptied_postgres_url: str) -> None:
    asked = text("SHOW idle_in_transaction_session_timeout")
    with closing(Store(emptied_postgres_url)) as store:
        assert store.is_ticking
        with store.briefly() as tx:
            assert tx.connection.execute(asked).scalar_one() == "5s"
            assert tx.ticking
        with store.writing() as tx:
            assert tx.connection.execute(asked).scalar_one() == "0"


@pytest.mark.parametrize(("durable", "synchronous"), [(True, 2), (False, 0)])
def test_a_sqlite_connection_is_set_up_to_lose_nothing(
    sqlite_url: str, durable: bool, synchronous: int
) -> None:
    def settings(tx: Transaction) -> list[Any]:
        names = ("journal_mode", "synchronous", "foreign_keys", "query_only")
        return [tx.connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in names]

    with closing(Store(sqlite_url, durable=durable)) as store:
        assert not store.is_ticking
        with store.writing() as tx:
            assert settings(tx) == ["wal", synchronous, 1, 0]
        with store.reading() as tx:
            assert settings(tx) == ["wal", synchronous, 1, 1]
        with closing(store.apart()) as apart, apart.writing() as tx:
            assert settings(tx) == ["wal", synchronous, 1, 0]


def test_a_callers_transaction_is_joined_and_stays_the_callers(store: Store, clock: Clock) -> None:
    engine = create_engine(store.url)
    for ends, kept in (("rollback", None), ("commit", "known")):
        with engine.connect() as connection:
            tx = store.joining(connection)
            assert (tx.connection, tx.now, tx.joined) == (connection, clock.now, True)
            write_mark(tx, "fact", "known")
            getattr(connection, ends)()
        assert mark_of(store) == kept
    engine.dispose()


def test_a_callers_other_database_is_refused(store: Store, tmp_path: Path) -> None:
    engine = create_engine(make_url(f"sqlite:///{tmp_path / 'callers.db'}"))
    with engine.connect() as connection, pytest.raises(DatabaseUnavailable) as refused:
        store.joining(connection)
    engine.dispose()
    assert str(refused.value) == (
        "connection: leads to a database without headway's tables; pass one to " + shown(store.url)
    )
