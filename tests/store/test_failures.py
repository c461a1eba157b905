"""The failures that count for a manifest: how many, when and for what, since its last success."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import select

from headway.domain.execution import ExecutionState, Failure, FailureCode, Outcome
from headway.domain.work_queue import Source
from headway.store.engine import Store
from headway.store.failures import NONE, Failures, failures_of, last_retry_at, read_failures
from headway.store.tables import manifest, manifest_state
from tests.store.factories import CANCELLED, FAILED, NOON, Clock, change_state, declare, ran

EARLIER, LATER = NOON - timedelta(hours=2), NOON - timedelta(hours=1)


def failed(**said: object) -> Outcome:
    failure = Failure("load", "ValueError", "no rows", **said)  # type: ignore[arg-type]
    return Outcome(ExecutionState.FAILED, failure)


LOST = Outcome(ExecutionState.FAILED, Failure("load", FailureCode.WORKER_LOST, "gone"))


def failures(store: Store) -> dict[str, Failures]:
    with store.reading() as tx:
        counted = select(manifest.c.external_id, failures_of(tx)).join(manifest_state)
        rows = tx.connection.execute(counted).all()
    return {name: read_failures(text) for name, text in rows}


def retries(store: Store) -> dict[str, object]:
    with store.reading() as tx:
        wished = last_retry_at().label("retry_at")
        asked = select(manifest.c.external_id, wished).join(manifest_state)
        return {name: moment for name, moment in tx.connection.execute(asked)}


def test_a_manifest_that_has_not_failed_has_none(store: Store) -> None:
    declare(store, "never", "well", "otherwise")
    ran(store, "well")
    ran(store, "otherwise", CANCELLED)
    ran(store, "otherwise", LOST)
    assert failures(store) == {"never": NONE, "well": NONE, "otherwise": NONE}


def test_failures_are_counted_with_the_last_moment_and_the_last_occurrence(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract", "other")
    ran(store, "extract", FAILED)
    ran(store, "extract")
    ran(store, "extract", FAILED, scheduled_for=LATER)
    moment = clock.advance(minutes=1, microseconds=7)
    ran(store, "extract", FAILED, scheduled_for=EARLIER)
    ran(store, "extract", LOST, scheduled_for=NOON)
    ran(store, "other", FAILED, source=Source.TRIGGER)
    assert failures(store) == {
        "extract": Failures(2, moment, LATER, for_good=False),
        "other": Failures(1, moment, None, for_good=False),
    }


def test_one_that_is_for_good_counts_so_until_it_is_resolved(store: Store) -> None:
    declare(store, "extract")
    last = ran(store, "extract", failed(final=True))
    ran(store, "extract", FAILED)
    assert failures(store)["extract"] == Failures(2, NOON, None, for_good=True)
    change_state(store, "extract", failures_after=last.id)
    assert failures(store)["extract"] == Failures(1, NOON, None, for_good=False)


def test_the_newest_failure_says_when_it_may_be_tried_again(store: Store) -> None:
    declare(store, "extract", "other")
    ran(store, "extract", failed(retry_in=timedelta(hours=5)))
    ran(store, "extract", failed(retry_in=timedelta(hours=1)))
    ran(store, "other", failed(retry_in=timedelta(hours=5)))
    ran(store, "other", FAILED)
    assert retries(store) == {"extract": NOON + timedelta(hours=1), "other": None}
