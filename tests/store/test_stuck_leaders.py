"""A leader whose session no timeout reaches: stopped while it was being sent what it asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import text

from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.migrate import migrate
from tests.builders import eventually
from tests.store.test_locks import session_of

MORE_THAN_ANY_BUFFER = b"SELECT repeat('x', 1000) FROM generate_series(1, 100000)"


@pytest.fixture
def stores(postgres_url: str) -> Iterator[tuple[Store, Store]]:
    first, second = Store(postgres_url), Store(postgres_url)
    migrate(first)
    yield first, second
    first.close()
    second.close()


def leads(store: Store, lock: Lock = Lock.MANAGE) -> bool:
    with store.leading(lock, seconds=1) as tx:
        return tx is not None


class Woken(Exception):
    """The stopped process goes on, and finds its connection gone."""


@contextmanager
def stopped_while_reading(store: Store, lock: Lock) -> Iterator[int]:
    """A leader that asks for more than fits into the socket and reads nothing; its session."""
    with pytest.raises(Woken), store.leading(lock, seconds=1) as tx:
        assert tx is not None
        driver: Any = tx.connection.connection.driver_connection
        pid = session_of(tx)
        driver.pgconn.send_query(MORE_THAN_ANY_BUFFER)
        yield pid
        tx.connection.invalidate()
        raise Woken


def session(store: Store, pid: int, what: str) -> Any:
    with store.reading() as tx:
        asked = text(f"SELECT {what} FROM pg_stat_activity WHERE pid = :pid")
        return tx.connection.execute(asked, {"pid": pid}).scalar()


STUCK = "wait_event = 'ClientWrite' AND query_start < clock_timestamp() - interval '1 s'"


def test_its_lock_is_taken_from_it_when_its_time_is_over(stores: tuple[Store, Store]) -> None:
    leader, follower = stores
    with stopped_while_reading(leader, Lock.MANAGE) as pid:
        eventually(lambda: session(follower, pid, "wait_event") == "ClientWrite")
        assert not leads(follower), "it has only just begun"
        eventually(lambda: bool(session(follower, pid, STUCK)))
        eventually(lambda: leads(follower))
        assert session(follower, pid, "pid") is None


def test_whoever_holds_another_lock_is_left_alone(stores: tuple[Store, Store]) -> None:
    leader, follower = stores
    with stopped_while_reading(leader, Lock.DISPATCH) as pid:
        eventually(lambda: bool(session(follower, pid, STUCK)))
        with follower.leading(Lock.MANAGE):
            third = Store(follower.url.render_as_string(hide_password=False))
            assert not leads(third)
            third.close()
        assert session(follower, pid, "pid") == pid
