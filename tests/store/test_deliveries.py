"""Deliveries by id: started once, and only what waits for a task server and is known."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from headway.domain.execution import Execution, ExecutionState
from headway.store import deliveries, executions, work_queue
from headway.store.deliveries import Waiting, claim_delivered, find_waiting
from headway.store.engine import Store
from headway.store.tables import execution
from tests.store.factories import ME, NOBODY, OTHER, Clock, queue_ad_hoc

FIRST_STEPS = {"work": "read"}


def sent(store: Store, server: str | None = "gpu", crashes: int = 0) -> int:
    entry = queue_ad_hoc(store)
    with store.writing() as tx:
        elsewhere = {} if server is None else {entry: server}
        [key] = work_queue.dispatch(tx, [entry], elsewhere).values()
        this = execution.c.id == key
        tx.connection.execute(update(execution).where(this).values(crashes=crashes))
    return key


def claim(store: Store, key: int, workflow: str = "work", crashes: int = 0) -> Execution | None:
    with store.writing() as tx:
        return claim_delivered(tx, ME, key, [workflow], FIRST_STEPS, crashes)


def waiting(store: Store, key: int) -> Waiting | None:
    with store.reading() as tx:
        return find_waiting(tx, key)


def test_a_delivery_starts_once_and_with_its_first_step(store: Store, clock: Clock) -> None:
    key, other = sent(store), sent(store)
    assert waiting(store, key) == deliveries.Waiting("work", 0)
    clock.advance(minutes=1)
    one = claim(store, key)
    assert one is not None
    assert (one.id, one.owner, one.state) == (key, ME, ExecutionState.IN_PROGRESS)
    assert (one.started_at, one.running_step, one.step_started_at) == (clock.now, "read", clock.now)
    assert (claim(store, key), waiting(store, key)) == (None, None)
    assert waiting(store, other) is not None


@pytest.mark.parametrize(
    ("crashes", "allowed", "starts"), [(0, 0, True), (2, 2, True), (2, 1, False)]
)
def test_what_took_more_workers_along_than_allowed_is_left(
    store: Store, crashes: int, allowed: int, starts: bool
) -> None:
    key = sent(store, crashes=crashes)
    assert waiting(store, key) == Waiting("work", crashes)
    assert (claim(store, key, crashes=allowed) is not None) is starts


def test_without_a_word_about_crashes_none_is_allowed(store: Store) -> None:
    key = sent(store, crashes=1)
    with store.writing() as tx:
        assert claim_delivered(tx, ME, key, ["work"]) is None


def test_what_is_not_known_or_not_sent_or_made_up_does_not_start(
    store: Store, clock: Clock
) -> None:
    own, unknown = sent(store, server=None), sent(store)
    running = sent(store)
    with store.writing() as tx:
        executions.claim_one(tx, OTHER, running)
    clock.now += timedelta(minutes=1)
    assert [claim(store, key) for key in (own, running, NOBODY)] == [None] * 3
    assert [waiting(store, key) for key in (own, running, NOBODY)] == [None] * 3
    assert claim(store, unknown, "other") is None
    assert claim(store, unknown) is not None
