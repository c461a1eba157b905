"""Entries with attempts of their own are queued again as they were, for later."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.execution import Execution, ExecutionState, Failure, Outcome
from headway.domain.retry import RetryPolicy
from headway.domain.work_queue import Source
from headway.store import executions, outcomes, work_queue
from headway.store.engine import Store
from headway.store.tables import execution_history
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    ME,
    NOON,
    Clock,
    a_manifest,
    declare,
    queue,
    queue_ad_hoc,
    rows_of,
)

TEN_SECONDS = RetryPolicy(timedelta(seconds=10), 1.0, timedelta(hours=1))
MINUTES = RetryPolicy(timedelta(minutes=1), 2.0, timedelta(hours=1))


def failed(**said: Any) -> Outcome:
    return Outcome(ExecutionState.FAILED, Failure("load", "ValueError", "no rows", **said))


def run(store: Store, entry: int) -> Execution:
    with store.writing() as tx:
        one = executions.claim_one(tx, ME, work_queue.dispatch(tx, [entry])[entry])
    assert one is not None
    return one


def end(store: Store, *runs: Execution, outcome: Outcome) -> None:
    with store.writing() as tx:
        outcomes.finish(tx, ME, {one.id: outcome for one in runs}, TEN_SECONDS)


def entries(store: Store) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in rows_of(store, queue_table)}


def test_each_waits_by_the_backoff_of_its_manifest_or_the_default(
    store: Store, clock: Clock
) -> None:
    declare(store, a_manifest("own", retry=MINUTES), "plain")
    said: dict[str, Any] = {"source": Source.TRIGGER, "max_attempts": 3, "priority": 7}
    own, plain = (queue(store, name, **said) for name in ("own", "plain"))
    alone = queue_ad_hoc(store, max_attempts=3, input="[1]", scheduled_at=NOON)
    before = entries(store)
    clock.advance(minutes=1)
    end(store, *(run(store, key) for key in (own, plain, alone)), outcome=failed())

    waits = {own: 60, plain: 10, alone: 10}
    assert entries(store) == {
        key: before[key]
        | {
            "attempts": 1,
            "scheduled_at": clock.now + timedelta(seconds=seconds),
            "delayed": True,
        }
        for key, seconds in waits.items()
    }
    end(store, run(store, own), outcome=failed())
    assert entries(store)[own]["scheduled_at"] == clock.now + timedelta(minutes=2)
    assert entries(store)[own]["attempts"] == 2
    end(store, run(store, own), outcome=failed())
    assert own not in entries(store)


@pytest.mark.parametrize(("seconds", "delayed"), [(0, False), (90, True)])
def test_a_job_says_when_it_may_be_tried_again(store: Store, seconds: int, delayed: bool) -> None:
    entry = queue_ad_hoc(store, max_attempts=2)
    wish = timedelta(seconds=seconds)
    end(store, run(store, entry), outcome=failed(retry_in=wish))
    row = entries(store)[entry]
    assert (row["scheduled_at"], row["delayed"]) == (NOON + wish, delayed)
    [record] = rows_of(store, execution_history)
    assert (record["retry_at"], record["final"]) == (NOON + wish, False)


def test_the_next_attempt_may_be_refused_as_often_as_the_first(store: Store) -> None:
    entry = queue_ad_hoc(store, max_attempts=2)
    with store.writing() as tx:
        made = work_queue.dispatch(tx, [entry])
        outcomes.take_back(tx, made.values(), 5, "no route")
    assert entries(store)[entry]["dispatch_attempts"] == 1
    end(store, run(store, entry), outcome=failed())
    assert entries(store)[entry]["dispatch_attempts"] == 0


def test_a_failure_is_on_record_with_everything_that_was_said(store: Store) -> None:
    end(
        store,
        run(store, queue_ad_hoc(store)),
        outcome=failed(traceback="line 1\nline 2", final=True),
    )
    [record] = rows_of(store, execution_history)
    told = ("state", "failure_step", "failure_type", "failure_message", "failure_traceback")
    assert [record[name] for name in told] == [
        "failed",
        "load",
        "ValueError",
        "no rows",
        "line 1\nline 2",
    ]
    assert (record["final"], record["retry_at"]) == (True, None)
    assert entries(store) == {}
