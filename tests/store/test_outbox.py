"""The outbox of executions that task servers are to be told of."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headway.domain.execution import ExecutionState
from headway.domain.retry import RetryPolicy
from headway.store import executions, outbox
from headway.store.engine import Store
from headway.store.outbox import HELD_FOR, MOST_DOUBLINGS, UNCLAIMED_FOR, Letter
from headway.store.tables import outbox as outbox_table
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    ME,
    NOON,
    Clock,
    a_manifest,
    declare,
    dispatched,
    rows_of,
)


@pytest.fixture
def sent(store: Store) -> list[int]:
    """Three pending executions that are due in the order in which they stand here."""
    declare(store, *(a_manifest(f"load-{number}") for number in range(3)))
    ids = [dispatched(store, f"load-{number}") for number in range(3)]
    with store.writing() as tx:
        outbox.put(tx, dict.fromkeys(ids, "broker"))
    return ids


def take(store: Store, limit: int = 10, server: str = "broker") -> list[Letter]:
    with store.writing() as tx:
        return outbox.take(tx, server, ["work"], limit)


def test_what_is_put_there_is_due_at_once(store: Store, sent: list[int]) -> None:
    row = {"task_server": "broker", "publish_at": NOON, "published": 0}
    assert rows_of(store, outbox_table) == [row | {"execution_id": key} for key in sent]


def test_what_is_taken_is_held_for_a_while(store: Store, clock: Clock, sent: list[int]) -> None:
    assert take(store, 2) == [Letter(key, 0) for key in sent[:2]]
    assert take(store) == [Letter(sent[2], 0)]
    clock.advance(seconds=HELD_FOR.total_seconds() - 1)
    assert take(store) == []
    clock.advance(seconds=1)
    assert take(store) == [Letter(key, 0) for key in sent]


def test_the_longest_due_is_taken_first(store: Store, clock: Clock, sent: list[int]) -> None:
    clock.advance(minutes=1)
    with store.writing() as tx:
        outbox.let_go(tx, [Letter(sent[0], 0)])
    assert take(store, 2) == [Letter(key, 0) for key in sent[1:]]


def test_only_ones_own_is_taken(store: Store, sent: list[int]) -> None:
    assert take(store, server="other") == []
    with store.writing() as tx:
        assert outbox.take(tx, "broker", ["theirs"], 10) == []
        executions.claim_one(tx, ME, sent[0])
    assert take(store) == [Letter(key, 0) for key in sent[1:]]


def test_what_was_told_is_told_again_after_ever_longer(
    store: Store, clock: Clock, sent: list[int]
) -> None:
    many = MOST_DOUBLINGS + 5
    with store.writing() as tx:
        outbox.note_published(tx, [Letter(sent[0], 0), Letter(sent[1], 2), Letter(sent[2], many)])
    assert [(row["publish_at"], row["published"]) for row in rows_of(store, outbox_table)] == [
        (NOON + UNCLAIMED_FOR, 1),
        (NOON + 4 * UNCLAIMED_FOR, 3),
        (NOON + 2**MOST_DOUBLINGS * UNCLAIMED_FOR, many + 1),
    ]
    with store.reading() as tx:
        assert outbox.next_due(tx, ["broker", "other"]) == NOON + UNCLAIMED_FOR
        assert outbox.next_due(tx, ["other"]) is None


def test_what_is_let_go_is_due_at_once_and_counted_as_before(
    store: Store, clock: Clock, sent: list[int]
) -> None:
    letters = take(store)
    later = clock.advance(seconds=1)
    with store.writing() as tx:
        outbox.let_go(tx, letters[:1])
        outbox.let_go(tx, [])
    first, second, _ = rows_of(store, outbox_table)
    assert (first["publish_at"], first["published"]) == (later, 0)
    assert second["publish_at"] == NOON + HELD_FOR


def test_what_was_never_told_is_queued_again_with_the_reason(store: Store, sent: list[int]) -> None:
    with store.writing() as tx:
        outbox.note_published(tx, [Letter(sent[0], 0)])
        assert outbox.recall(tx, "other", ["work"], "no route") == 0
        assert outbox.recall(tx, "broker", ["theirs"], "no route") == 0
        assert outbox.recall(tx, "broker", ["work"], "no route") == 2
    assert [row["execution_id"] for row in rows_of(store, outbox_table)] == sent[:1]
    waiting = rows_of(store, queue_table)
    assert [(row["dispatch_attempts"], row["attempts"]) for row in waiting] == [(0, 0), (0, 0)]
    with store.reading() as tx:
        ended = [executions.find(tx, key) for key in sent]
    assert [one and one.state for one in ended] == [
        ExecutionState.PENDING,
        ExecutionState.HANDED_BACK,
        ExecutionState.HANDED_BACK,
    ]
    assert ended[1] is not None and ended[1].failure is not None
    assert (ended[1].failure.step, ended[1].failure.type) == ("DispatchJobs", "HandOverRefused")
    assert ended[1].failure.message == "task server 'broker' does not answer: no route"


def test_what_a_server_refused_is_taken_back_and_told_no_more(
    store: Store, sent: list[int]
) -> None:
    with store.writing() as tx:
        [one] = outbox.take_back(
            tx, sent[0], 5, "no such queue", RetryPolicy(), timedelta(minutes=1)
        )
    assert one.failure is not None and one.failure.message == "no such queue"
    assert [row["execution_id"] for row in rows_of(store, outbox_table)] == sent[1:]
    [entry] = rows_of(store, queue_table)
    assert (entry["dispatch_attempts"], entry["delayed"]) == (1, True)


def test_a_server_that_refuses_is_borne_with_for_a_while(store: Store, sent: list[int]) -> None:
    with store.writing() as tx:
        [patient] = outbox.take_back(tx, sent[0], 1, "full", RetryPolicy(), timedelta(hours=1))
        [hopeless] = outbox.take_back(tx, sent[1], 1, "full", RetryPolicy(), timedelta())
    assert patient.state is ExecutionState.HANDED_BACK
    assert hopeless.state is ExecutionState.FAILED


def test_what_is_due_and_waits_no_longer_is_forgotten_a_batch_at_a_time(
    store: Store, clock: Clock, sent: list[int]
) -> None:
    with store.writing() as tx:
        outbox.note_published(tx, [Letter(sent[2], 0)])
        for key in sent[1:]:
            executions.claim_one(tx, ME, key)
        assert outbox.drop_claimed(tx, 10) == 1, "one waits, and one is not due"
    assert [row["execution_id"] for row in rows_of(store, outbox_table)] == [sent[0], sent[2]]
    clock.advance(minutes=1)
    with store.writing() as tx:
        executions.claim_one(tx, ME, sent[0])
        assert [outbox.drop_claimed(tx, 1) for _ in range(3)] == [1, 1, 0]
