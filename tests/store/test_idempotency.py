"""Answers to requests with a key are kept for a day, for each actor, and given again in full."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headway.domain.idempotency import Answer
from headway.errors import KeyReused
from headway.store import idempotency
from headway.store.engine import Store
from headway.store.tables import idempotency as table
from tests.store.factories import NOON, Clock, rows_of

ANSWER = Answer(201, '{"entry": 7}', {"Location": "/entries/7"})


def begin(store: Store, actor: str = "alice", key: str = "k", digest: str = "d") -> Answer | None:
    with store.writing() as tx:
        return idempotency.begin(tx, actor, key, digest)


def answered(store: Store, actor: str = "alice", key: str = "k") -> None:
    assert begin(store, actor, key) is None
    with store.writing() as tx:
        idempotency.finish(tx, actor, key, ANSWER)


def test_the_same_request_has_the_same_answer(store: Store) -> None:
    answered(store)
    assert begin(store) == ANSWER


def test_a_key_is_another_for_another_actor(store: Store) -> None:
    answered(store)
    assert begin(store, actor="bob") is None
    assert begin(store, key="other") is None
    with store.writing() as tx:
        idempotency.finish(tx, "bob", "k", Answer(404, "none"))
    assert begin(store) == ANSWER
    assert begin(store, actor="bob") == Answer(404, "none", {})


def test_another_request_with_the_same_key_is_refused(store: Store) -> None:
    answered(store)
    with pytest.raises(KeyReused, match="k"):
        begin(store, digest="another")
    assert begin(store) == ANSWER


def test_what_is_forgotten_begins_anew_and_nothing_else(store: Store) -> None:
    for actor, key in (("alice", "k"), ("alice", "other"), ("bob", "k")):
        answered(store, actor, key)
    with store.writing() as tx:
        idempotency.forget(tx, "alice", "k")
    assert begin(store) is None
    assert (begin(store, key="other"), begin(store, actor="bob")) == (ANSWER, ANSWER)


def test_an_answer_is_kept_for_a_day(store: Store, clock: Clock) -> None:
    answered(store)
    answered(store, "bob")
    clock.now = NOON + timedelta(hours=24)
    assert begin(store) == ANSWER
    clock.now += timedelta(microseconds=1)
    assert begin(store, digest="another") is None
    moments = {row["actor"]: row["created_at"] for row in rows_of(store, table)}
    assert moments == {"alice": clock.now, "bob": NOON}
