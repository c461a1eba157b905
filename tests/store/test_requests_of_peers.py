"""What is remembered of peers' requests: each once, and never more than a bounded number."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import select

from headway.store import audit, nonces
from headway.store.engine import Store
from headway.store.nonces import Taken
from headway.store.tables import audit as audit_table
from headway.store.tables import nonce
from tests.store.factories import NOON, Clock, at_once


def take(store: Store, value: str, source: str = "sales") -> Taken:
    with store.briefly() as tx:
        return nonces.take(tx, source, value, NOON)


def test_a_nonce_is_new_once_for_each_source(store: Store) -> None:
    assert take(store, "n1") is Taken.NEW
    assert take(store, "n1") is Taken.REPLAYED
    assert take(store, "n1", "patches") is Taken.NEW
    assert take(store, "n2") is Taken.NEW


def test_of_servers_that_take_the_same_at_once_one_does(store: Store, second: Store) -> None:
    for number in range(20):
        value = f"n{number}"
        taken = at_once(partial(take, store, value), partial(take, second, value))
        assert sorted(taken) == [Taken.NEW, Taken.REPLAYED]


def test_a_stale_request_is_not_remembered(store: Store, clock: Clock) -> None:
    clock.advance(seconds=61)
    assert take(store, "n1") is Taken.STALE
    with store.reading() as tx:
        assert tx.connection.execute(select(nonce)).first() is None


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [(-61, Taken.STALE), (-60, Taken.NEW), (60, Taken.NEW), (61, Taken.STALE)],
)
def test_a_request_is_believed_for_a_minute_either_way(
    store: Store, clock: Clock, seconds: int, taken: Taken
) -> None:
    clock.now = NOON - timedelta(seconds=seconds)
    assert take(store, "n1") is taken


def test_old_nonces_go_faster_than_new_ones_come(store: Store, clock: Clock) -> None:
    for number in range(250):
        take(store, f"old{number}")
    clock.advance(minutes=5, seconds=1)
    for number, left in enumerate((151, 52, 3)):
        with store.briefly() as tx:
            nonces.take(tx, "sales", f"new{number}", clock.now)
        with store.reading() as tx:
            assert len(tx.connection.execute(select(nonce)).all()) == left


def test_as_long_as_a_request_is_believed_its_nonce_is_kept() -> None:
    assert 2 * nonces.BELIEVED + timedelta(seconds=60) < nonces.KEPT


def test_the_newest_queries_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "QUERIES_KEPT", 5)
    with store.writing() as tx:
        tx.connection.execute(
            audit_table.insert().values(
                at=tx.now, actor="anna", action="other", subject="something", detail=None
            )
        )
    for number in range(20):
        with store.briefly() as tx:
            audit.note_query(tx, "sales", "objective", f"OK, {number} results")
    with store.reading() as tx:
        rows = tx.connection.execute(select(audit_table).order_by(audit_table.c.id)).all()
    assert [row.detail for row in rows if row.action == audit.QUERY] == [
        f"OK, {number} results" for number in range(15, 20)
    ]
    assert [row.actor for row in rows if row.action == "other"] == ["anna"]
