"""What is old enough goes, in bounded batches; what still matters never does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from headway.domain.execution import ExecutionState, Outcome
from headway.domain.work_queue import Source
from headway.store import retention, work_queue
from headway.store.engine import Store
from headway.store.tables import dead_letter, execution, execution_history
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from tests.store.factories import (
    CANCELLED,
    FAILED,
    NOON,
    Clock,
    change_state,
    dead_letter_for,
    declare,
    dispatched,
    queue,
    ran,
    rows_of,
    started,
    view_of,
)

Verb = Callable[[Transaction, datetime, int], int]


def purge(store: Store, verb: Verb, before: datetime, limit: int = 1000) -> int:
    with store.writing() as tx:
        return verb(tx, before, limit)


def test_finished_executions_go_when_they_are_old_enough(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    for outcome in (Outcome(ExecutionState.COMPLETED), CANCELLED):
        ran(store, outcome=outcome, source=Source.TRIGGER)
    later = clock.advance(days=1)
    kept = ran(store, source=Source.TRIGGER)
    assert purge(store, retention.delete_finished, NOON) == 0
    assert purge(store, retention.delete_finished, later) == 2
    assert [row["id"] for row in rows_of(store, execution_history)] == [kept.id]


def test_failures_that_still_count_are_kept_whatever_their_age(store: Store, clock: Clock) -> None:
    declare(store, "failing", "recovered")
    ran(store, "recovered", FAILED)
    ran(store, "recovered")
    failures = [ran(store, "failing", FAILED) for _ in range(2)]
    later = clock.advance(days=365)
    assert purge(store, retention.delete_finished, later) == 2
    assert view_of(store, "failing").failed_count == 2
    change_state(store, "failing", failures_after=failures[-1].id)
    assert purge(store, retention.delete_finished, later) == 2


def test_live_executions_are_never_deleted(store: Store, clock: Clock) -> None:
    declare(store, "pending", "running")
    dispatched(store, "pending")
    started(store, "running")
    later = clock.advance(days=365)
    assert purge(store, retention.delete_finished, later) == 0
    assert len(rows_of(store, execution)) == 2


def test_entries_that_ended_go_and_queued_ones_stay(store: Store, clock: Clock) -> None:
    ids = declare(store, "cancelled", "failed", "waiting")
    queue(store, "cancelled")
    failed = queue(store, "failed")
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["cancelled"]], "not today")
        ended = {"status": "failed", "ended_at": NOON, "ended_reason": "unreadable"}
        tx.connection.execute(update(queue_table).where(queue_table.c.id == failed).values(ended))
    waiting = queue(store, "waiting")
    later = clock.advance(days=1)
    assert purge(store, retention.delete_ended_entries, NOON) == 0
    assert purge(store, retention.delete_ended_entries, later) == 2
    assert [row["id"] for row in rows_of(store, queue_table)] == [waiting]


def test_resolved_dead_letters_go_and_open_ones_stay(store: Store, clock: Clock) -> None:
    declare(store, "resolved", "open")
    dead_letter_for(store, "resolved")
    with store.writing() as tx:
        values = {"status": "acknowledged", "resolved_at": NOON}
        tx.connection.execute(update(dead_letter).values(**values))
    dead_letter_for(store, "open")
    later = clock.advance(days=365)
    assert purge(store, retention.delete_resolved_dead_letters, NOON) == 0
    assert purge(store, retention.delete_resolved_dead_letters, later) == 1
    [left] = rows_of(store, dead_letter)
    assert left["status"] == "awaiting_intervention"


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_batch_is_bounded_and_takes_the_oldest_first(
    store: Store, clock: Clock, limit: int
) -> None:
    declare(store, "extract")
    ended = [ran(store, source=Source.TRIGGER).id for _ in range(5)]
    later = clock.now + timedelta(days=1)
    assert purge(store, retention.delete_finished, later, limit) == limit
    assert [row["id"] for row in rows_of(store, execution_history)] == ended[limit:]
