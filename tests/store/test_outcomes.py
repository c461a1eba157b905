"""What the end of a run means for its manifest, in the same transaction."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from headway.domain.execution import Outcome
from headway.domain.manifest import Group
from headway.domain.schedule import Never, Schedule, cron, every, once
from headway.domain.time_options import TimeOptions
from headway.domain.work_queue import Source
from headway.store import executions, outcomes, work_queue
from headway.store.engine import Store
from headway.store.tables import execution, execution_history, manifest, manifest_state
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    CANCELLED,
    COMPLETED,
    FAILED,
    ME,
    NOON,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    declare,
    finish,
    queue,
    queue_ad_hoc,
    ran,
    rows_of,
    started,
    state_of,
    wakes_of,
)

HOURLY = cron("0 * * * *")
ELEVEN = NOON - timedelta(hours=1)


def test_a_success_is_counted_and_forgives_the_failures_before_it(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract")
    ran(store, outcome=FAILED, scheduled_for=NOON)
    clock.advance(minutes=5)
    one = started(store, scheduled_for=NOON)
    later = clock.advance(minutes=5)
    finish(store, one)
    state = state_of(store)
    assert (state.last_success_at, state.settled_until) == (later, later)
    assert (state.success_seq, state.failures_after) == (1, one.id)
    ran(store)
    assert state_of(store).success_seq == 2


def test_a_success_wakes_its_manifest_and_the_children(store: Store) -> None:
    key = declare(store, "extract")["extract"]
    ran(store)
    assert wakes_of(store) == [(key, "children"), (key, "self")]


@pytest.mark.parametrize(
    ("wake_at", "source", "variance", "outcome", "woken"),
    [
        (timedelta(hours=1), Source.TRIGGER, None, COMPLETED, False),
        (timedelta(hours=1), Source.RERUN, None, COMPLETED, False),
        (None, Source.TRIGGER, None, COMPLETED, True),
        (timedelta(0), Source.TRIGGER, None, COMPLETED, True),
        (timedelta(hours=1), Source.TRIGGER, timedelta(minutes=5), COMPLETED, True),
        (timedelta(hours=1), Source.SCHEDULE, None, COMPLETED, True),
        (timedelta(hours=1), Source.REQUEUE, None, COMPLETED, True),
        (timedelta(hours=1), Source.TRIGGER, None, FAILED, True),
        (timedelta(hours=1), Source.TRIGGER, None, CANCELLED, True),
    ],
)
def test_a_manager_that_looks_in_time_is_not_woken_by_a_success_somebody_asked_for(
    store: Store,
    wake_at: timedelta | None,
    source: Source,
    variance: timedelta | None,
    outcome: Outcome,
    woken: bool,
) -> None:
    """It makes nothing due sooner, unless the manager waits for it, or two occurrences vary."""
    options = TimeOptions(variance=variance)
    key = declare(store, a_manifest(schedule=every(hours=2), time=options))["extract"]
    with store.writing() as tx:
        moment = None if wake_at is None else NOON + wake_at
        tx.connection.execute(update(manifest_state).values(wake_at=moment))
    ran(store, outcome=outcome, source=source)
    assert ((key, "self") in wakes_of(store)) is woken


@pytest.mark.parametrize("outcome", [FAILED, CANCELLED])
def test_any_other_end_wakes_only_its_manifest(store: Store, outcome: Outcome) -> None:
    key = declare(store, "extract")["extract"]
    ran(store, outcome=outcome)
    assert wakes_of(store) == [(key, "self")]


def test_what_has_no_manifest_wakes_nobody(store: Store) -> None:
    entry = queue_ad_hoc(store)
    with store.writing() as tx:
        [execution_id] = work_queue.dispatch(tx, [entry]).values()
        [one] = executions.claim_pending(tx, ME, 1, ["work"])
    assert [ended.id for ended in finish(store, one)] == [execution_id]
    assert wakes_of(store) == []


def test_a_failure_settles_nothing(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    before = state_of(store)
    clock.advance(minutes=5)
    one = ran(store, outcome=FAILED, scheduled_for=NOON)
    assert state_of(store) == before
    assert one.failure == FAILED.failure


def test_a_cancelled_run_settles_exactly_its_own_occurrence(store: Store, clock: Clock) -> None:
    declare(store, a_manifest(schedule=HOURLY))
    clock.advance(hours=3)
    ran(store, outcome=CANCELLED, scheduled_for=NOON)
    state = state_of(store)
    assert (state.settled_until, state.last_success_at, state.success_seq) == (NOON, None, 0)


def test_a_cancelled_run_never_takes_back_what_is_settled(store: Store, clock: Clock) -> None:
    declare(store, a_manifest(schedule=HOURLY))
    ran(store, scheduled_for=NOON)
    ran(store, outcome=CANCELLED, scheduled_for=ELEVEN)
    assert state_of(store).settled_until == NOON
    ran(store, outcome=CANCELLED, source=Source.TRIGGER)
    assert state_of(store).settled_until == NOON


@pytest.mark.parametrize(
    ("schedule", "source", "settled_after"),
    [
        (HOURLY, Source.SCHEDULE, 60),
        (HOURLY, Source.REQUEUE, 60),
        (HOURLY, Source.TRIGGER, None),
        (HOURLY, Source.RERUN, None),
        (every(hours=1), Source.SCHEDULE, 90),
        (every(hours=1), Source.TRIGGER, 90),
        (Never(), Source.TRIGGER, None),
    ],
)
def test_a_manual_success_moves_an_interval_but_not_a_cron(
    store: Store, clock: Clock, schedule: Schedule, source: Source, settled_after: int | None
) -> None:
    """A cron keeps to its nominal times: the newest that came due while the run took."""
    declare(store, a_manifest(schedule=schedule))
    later = clock.advance(minutes=90)
    ran(store, source=source, scheduled_for=NOON)
    state = state_of(store)
    settled = None if settled_after is None else NOON + timedelta(minutes=settled_after)
    assert state.settled_until == settled
    assert (state.last_success_at, state.success_seq) == (later, 1)


def test_a_once_manifest_is_switched_off_by_its_success_alone(store: Store) -> None:
    declare(store, a_manifest("once", schedule=once(NOON)), "other")
    ran(store, "once", FAILED)
    ran(store, "once", CANCELLED)
    assert [row["enabled"] for row in rows_of(store, manifest)] == [True, True]
    ran(store, "once")
    ran(store, "other")
    assert [row["enabled"] for row in rows_of(store, manifest)] == [False, True]


def test_one_batch_may_hold_every_kind_of_end(store: Store, clock: Clock) -> None:
    ids = declare(store, "good", "bad", "stopped", "given-up")
    good, bad = started(store, "good"), started(store, "bad")
    stopped, given_up = started(store, "stopped", scheduled_for=NOON), started(store, "given-up")
    wakes_of(store)
    clock.advance(minutes=1)
    with store.writing() as tx:
        ended = outcomes.finish(tx, ME, {bad.id: FAILED, good.id: COMPLETED, stopped.id: CANCELLED})
        outcomes.hand_back(tx, ME, [given_up.id])
    assert [(one.id, one.state) for one in ended] == [
        (good.id, COMPLETED.state),
        (bad.id, FAILED.state),
        (stopped.id, CANCELLED.state),
    ]
    assert [state_of(store, name).settled_until for name in ("good", "bad", "stopped")] == [
        clock.now,
        None,
        NOON,
    ]
    woken = [(ids[name], "self") for name in ids] + [(ids["good"], "children")]
    assert wakes_of(store) == sorted(woken)


def test_the_record_of_a_run_keeps_everything_its_live_row_had(store: Store, clock: Clock) -> None:
    declare(store, a_manifest(input="[1]"), groups=[Group("etl")])
    one = started(store, scheduled_for=ELEVEN, priority=7, scheduled_at=NOON, attempts=2)
    with store.writing() as tx:
        executions.note_step(tx, ME, one.id, "load")
    [live] = rows_of(store, execution)
    later = clock.advance(minutes=1)
    finish(store, one, Outcome(COMPLETED.state, output="[2]"))
    assert rows_of(store, execution) == []
    [record] = rows_of(store, execution_history)
    live.pop("single_flight")
    ended = {"state": "completed", "finished_at": later, "output": "[2]", "final": False}
    nothing = dict.fromkeys(
        ("failure_step", "failure_type", "failure_message", "failure_traceback", "retry_at")
    )
    assert record == live | ended | nothing
    assert (record["external_id"], record["group_name"], record["attempt"]) == (
        "extract",
        "etl",
        3,
    )


def queued_again(store: Store, **fields: Any) -> dict[str, Any]:
    queue(store, **fields)
    [before] = rows_of(store, queue_table)
    with store.writing() as tx:
        work_queue.dispatch(tx, [before["id"]])
        [one] = executions.claim_pending(tx, ME, 1, ["work"])
    with store.writing() as tx:
        outcomes.hand_back(tx, ME, [one.id])
    return before


def test_a_run_handed_back_leaves_its_entry_as_it_was(store: Store, clock: Clock) -> None:
    key = declare(store, "extract")["extract"]
    before = queued_again(
        store, scheduled_for=ELEVEN, scheduled_at=NOON, priority=9, attempts=1, max_attempts=3
    )
    assert rows_of(store, queue_table) == [before]
    assert rows_of(store, execution_history)[0]["state"] == "handed_back"
    assert state_of(store).settled_until is None
    assert wakes_of(store) == [(key, "self")]


def test_what_was_handed_back_starts_under_a_new_execution(store: Store) -> None:
    declare(store, "extract")
    before = queued_again(store)
    with store.writing() as tx:
        [second] = work_queue.dispatch(tx, [before["id"]]).values()
    [first] = rows_of(store, execution_history)
    assert second > first["id"]
    assert (first["attempt"], rows_of(store, execution)[0]["attempt"]) == (1, 1)


def test_where_a_newer_entry_waits_it_stands_for_the_one_handed_back(store: Store) -> None:
    declare(store, "extract")
    one = started(store)
    newer = queue(store)
    with store.writing() as tx:
        [ended] = outcomes.hand_back(tx, ME, [one.id])
    assert ended.state == "handed_back"
    assert [row["id"] for row in rows_of(store, queue_table)] == [newer]


def test_what_is_handed_back_after_its_manifest_was_removed_ends_as_cancelled(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract", "load")
    removed, kept = started(store, "extract"), started(store, "load")
    apply(store, a_declaration(a_manifest("load")))
    later: datetime = clock.advance(minutes=1)
    with store.writing() as tx:
        outcomes.hand_back(tx, ME, [removed.id, kept.id])
    gone, waiting = rows_of(store, queue_table)
    assert (gone["status"], gone["ended_at"]) == ("cancelled", later)
    assert gone["ended_reason"] == "the manifest is no longer declared"
    assert (waiting["status"], waiting["ended_at"]) == ("queued", None)


def test_in_brief_the_same_is_recorded_and_of_no_manifest_only_the_end_is_told(
    store: Store,
) -> None:
    declare(store, "extract")
    queue(store)
    alone = [queue_ad_hoc(store) for _ in range(2)]
    with store.writing() as tx:
        work_queue.dispatch(tx, [row["id"] for row in rows_of(store, queue_table)])
        claimed = executions.claim_pending(tx, ME, 10, ["extract", "ad-hoc", "work"])
    ends = {one.id: COMPLETED for one in claimed}
    assert len(ends) == 3
    with store.writing() as tx:
        ended = outcomes.finish(tx, ME, ends, in_brief=True)
        again = outcomes.finish(tx, ME, ends, in_brief=True)
    assert {(one.id, one.state) for one in ended} == {(key, COMPLETED.state) for key in ends}
    assert again == []
    assert [one.external_id for one in ended if one.manifest_id] == ["extract"]
    assert {row["entry_id"] for row in rows_of(store, execution_history)} >= set(alone)
    assert rows_of(store, execution) == []
    assert state_of(store).success_seq == 1
