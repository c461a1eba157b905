"""What the end of a run means for its manifest, in the same transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from headway.domain.execution import Execution, ExecutionState, Failure, FailureCode, Outcome
from headway.domain.manifest import Group
from headway.domain.refusals import pause_after
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Never, Schedule, cron, every, once
from headway.domain.time_options import TimeOptions
from headway.domain.work_queue import Source
from headway.store import executions, outbox, outcomes, work_queue
from headway.store.engine import Store
from headway.store.hand_backs import Charge
from headway.store.tables import execution, execution_history, manifest, manifest_state
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
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
    change_manifest,
    change_state,
    declare,
    dispatched,
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


def test_a_success_somebody_asked_for_leaves_a_once_manifest_on(store: Store) -> None:
    declare(store, a_manifest("once", schedule=once(NOON)))
    ran(store, "once", source=Source.TRIGGER)
    assert [row["enabled"] for row in rows_of(store, manifest)] == [True]
    ran(store, "once", source=Source.REQUEUE)
    assert [row["enabled"] for row in rows_of(store, manifest)] == [False]


def test_several_runs_of_one_manifest_that_end_together_all_count(
    store: Store, clock: Clock
) -> None:
    declare(store, a_manifest(schedule=HOURLY, allow_overlap=True))
    scheduled_for = [ELEVEN, NOON, NOON - timedelta(hours=2)]
    runs = [started(store, scheduled_for=one) for one in scheduled_for]
    with store.writing() as tx:
        outcomes.finish(tx, ME, dict.fromkeys((one.id for one in runs), COMPLETED))
    state = state_of(store)
    assert (state.success_seq, state.settled_until) == (3, NOON)
    assert (state.failures_after, state.last_success_at) == (runs[-1].id, NOON)


def test_several_cancelled_runs_settle_the_newest_of_their_occurrences(store: Store) -> None:
    declare(store, a_manifest(schedule=HOURLY, allow_overlap=True))
    runs = [started(store, scheduled_for=one) for one in (NOON, ELEVEN)]
    manual = started(store, source=Source.TRIGGER)
    with store.writing() as tx:
        ids = [one.id for one in (*runs, manual)]
        outcomes.finish(tx, ME, dict.fromkeys(ids, CANCELLED))
    assert state_of(store).settled_until == NOON


def test_a_success_takes_no_resolution_of_later_failures_back(store: Store) -> None:
    declare(store, "extract")
    one = started(store)
    change_state(store, "extract", failures_after=one.id + 1000)
    finish(store, one)
    assert state_of(store).failures_after == one.id + 1000


def test_a_success_counts_though_somebody_broke_the_row(store: Store) -> None:
    declare(store, a_manifest(schedule=HOURLY))
    one = started(store, scheduled_for=NOON)
    change_manifest(store, "extract", cron_expression="61 * * * *")
    finish(store, one)
    state = state_of(store)
    assert (state.success_seq, state.settled_until, state.last_success_at) == (1, None, NOON)


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


def ended(store: Store, act: Callable[[Transaction], list[Execution]]) -> list[Execution]:
    """What *act* has ended, as it is on record."""
    with store.writing() as tx:
        act(tx)
    with store.reading() as tx:
        found = [executions.find(tx, row["id"]) for row in rows_of(store, execution_history)]
    return [one for one in found if one is not None]


def test_what_is_cancelled_before_it_started_says_so(store: Store) -> None:
    declare(store, "extract", "load", "running")
    chosen, other = dispatched(store, "extract"), dispatched(store, "load")
    running = started(store, "running")
    [one] = ended(
        store,
        lambda tx: outcomes.cancel_pending(
            tx, execution.c.id.in_([chosen, running.id]), "not today"
        ),
    )
    assert (one.id, one.state) == (chosen, ExecutionState.CANCELLED)
    assert one.failure == Failure("work", "JobCancelled", "cancelled before it started: not today")
    assert rows_of(store, queue_table) == []
    assert [row["id"] for row in rows_of(store, execution)] == [other, running.id]


def test_what_was_never_picked_up_says_so(store: Store) -> None:
    declare(store, "extract")
    dispatched(store)
    [one] = ended(store, lambda tx: outcomes.fail_stale_pending(tx, NOON + timedelta(seconds=1)))
    assert one.state is ExecutionState.FAILED
    assert one.failure == Failure(
        "ReapStalePending",
        FailureCode.STALE_PENDING,
        "no worker picked this up within stale_pending_timeout",
    )


def test_what_waits_for_workers_that_are_there_is_not_stale(store: Store) -> None:
    declare(store, "extract", "elsewhere")
    dispatched(store)
    sent = dispatched(store, "elsewhere")
    with store.writing() as tx:
        chosen = execution.c.id == sent
        tx.connection.execute(execution.update().where(chosen).values(task_server="gpu"))
    later = NOON + timedelta(seconds=1)
    [one] = ended(store, lambda tx: outcomes.fail_stale_pending(tx, later, ["work"]))
    assert one.id == sent, "they do not wait for it"
    assert len(rows_of(store, execution)) == 1
    assert len(ended(store, lambda tx: outcomes.fail_stale_pending(tx, later, ["other"]))) == 2


@pytest.mark.parametrize(
    ("published", "delivered", "stale"),
    [(0, [], False), (1, [], True), (1, ["work"], False), (1, ["other"], True)],
)
def test_what_is_still_to_be_told_is_not_stale(
    store: Store, published: int, delivered: list[str], stale: bool
) -> None:
    declare(store, "extract")
    key = dispatched(store)
    with store.writing() as tx:
        outbox.put(tx, {key: "gpu"})
        for number in range(published):
            outbox.note_published(tx, [outbox.Letter(key, number)])
        later = NOON + timedelta(seconds=1)
        found = outcomes.fail_stale_pending(tx, later, delivered=delivered)
    assert [one.id for one in found] == ([key] if stale else [])


def test_what_did_not_end_in_time_says_so(store: Store) -> None:
    declare(store, "extract", "load", "pending")
    one, other = started(store), started(store, "load")
    pending = dispatched(store, "pending")
    keys = [one.id, pending]
    [found] = ended(store, lambda tx: outcomes.fail_stale_in_progress(tx, keys))
    assert (found.id, found.state) == (one.id, ExecutionState.FAILED)
    assert found.failure == Failure(
        "ReapStaleInProgress",
        FailureCode.STALE_IN_PROGRESS,
        "did not end within stale_in_progress_timeout",
    )
    assert [row["id"] for row in rows_of(store, execution)] == [other.id, pending]


@pytest.mark.parametrize(
    ("reason", "step", "failure"),
    [
        (None, "load", Failure("load", FailureCode.WORKER_LOST, "its worker worker-1 is gone")),
        (None, None, Failure("work", FailureCode.WORKER_LOST, "its worker worker-1 is gone")),
        (
            "timeout",
            "load",
            Failure(
                "load",
                FailureCode.JOB_TIMEOUT,
                "ran longer than its timeout, and its worker is gone",
            ),
        ),
        (
            "please",
            "load",
            Failure("load", "JobCancelled", "was to be stopped, and its worker is gone"),
        ),
    ],
)
def test_an_orphan_says_why_it_ended(
    store: Store, reason: str | None, step: str | None, failure: Failure
) -> None:
    declare(store, "extract")
    one = started(store)
    with store.writing() as tx:
        if step is not None:
            executions.note_step(tx, ME, one.id, step)
        if reason is not None:
            executions.request_cancel(tx, [one.id], reason)
    [found] = ended(store, lambda tx: outcomes.end_orphans(tx, 3)[0])
    assert found.failure == failure


def test_an_orphan_that_had_not_begun_is_charged_nothing_after_a_first_crash(
    store: Store,
) -> None:
    declare(store, "extract")
    entry = queue(store)
    for crashes, state in ((0, "failed"), (1, "handed_back"), (1, "handed_back")):
        with store.writing() as tx:
            [key] = work_queue.dispatch(tx, [entry]).values()
            one = executions.claim_one(tx, ME, key)
        assert one is not None and one.crashes == crashes
        [*_, last] = ended(store, lambda tx: outcomes.end_orphans(tx, 3)[0])
        assert last.state == state


@pytest.mark.parametrize(
    ("outcome", "state", "message"),
    [
        (FAILED, ExecutionState.CANCELLED, "no rows"),
        (
            Outcome(ExecutionState.HANDED_BACK),
            ExecutionState.CANCELLED,
            "was to be stopped, and has been",
        ),
        (COMPLETED, ExecutionState.COMPLETED, None),
    ],
)
def test_what_a_person_wanted_stopped_is_not_repeated(
    store: Store, outcome: Outcome, state: ExecutionState, message: str | None
) -> None:
    declare(store, "extract")
    one = started(store, source=Source.TRIGGER, max_attempts=3)
    with store.writing() as tx:
        executions.request_cancel(tx, [one.id], "please")
    [found] = finish(store, one, outcome)
    assert (found.state, found.failure and found.failure.message) == (state, message)
    assert rows_of(store, queue_table) == []


def test_what_ran_too_long_is_tried_again_like_any_failure(store: Store) -> None:
    declare(store, "extract")
    one = started(store, source=Source.TRIGGER, max_attempts=2)
    with store.writing() as tx:
        executions.request_cancel(tx, [one.id], outcomes.TIMEOUT)
    [found] = finish(store, one, FAILED)
    assert found.state is ExecutionState.FAILED
    assert [row["id"] for row in rows_of(store, queue_table)] == [one.entry_id]


def test_a_long_refusal_is_cut(store: Store) -> None:
    declare(store, "extract")
    key = dispatched(store)
    [one] = ended(store, lambda tx: outcomes.take_back(tx, [key], 5, "x" * 5000))
    assert one.state is ExecutionState.HANDED_BACK and one.failure is not None
    assert (one.failure.step, one.failure.type) == ("DispatchJobs", FailureCode.REFUSED)
    assert 0 < len(one.failure.message) <= outcomes.REASON_LIMIT


def test_several_that_are_refused_wait_each_as_long_as_it_was_refused_often(
    store: Store,
) -> None:
    declare(store, "often", "once")
    often = queue(store, "often")
    for _ in range(2):
        with store.writing() as tx:
            outcomes.take_back(tx, work_queue.dispatch(tx, [often]).values(), 9, "full")
    once_ = queue(store, "once")
    with store.writing() as tx:
        both = work_queue.dispatch(tx, [often, once_]).values()
        outcomes.take_back(tx, both, 9, "full")
    rows = {row["id"]: row for row in rows_of(store, queue_table)}
    assert [(rows[key]["dispatch_attempts"], rows[key]["scheduled_at"]) for key in rows] == [
        (3, NOON + pause_after(3)),
        (1, NOON + pause_after(1)),
    ]
    assert all(row["delayed"] for row in rows.values())


def test_who_looks_for_its_outcomes_finds_one_that_became_a_cancellation(store: Store) -> None:
    declare(store, "extract")
    one = started(store)
    with store.writing() as tx:
        executions.request_cancel(tx, [one.id], "please")
    [found] = finish(store, one, FAILED)
    with store.reading() as tx:
        assert outcomes.written_by(tx, ME, {one.id: FAILED}) == [found]
        assert outcomes.written_by(tx, ME, {one.id: COMPLETED}) == []


BACKOFF = RetryPolicy(timedelta(seconds=7))


@pytest.mark.parametrize(
    "end",
    [
        lambda tx, key: outcomes.finish(tx, ME, {key: FAILED}, BACKOFF),
        lambda tx, key: outcomes.fail_stale_in_progress(tx, [key], BACKOFF),
        lambda tx, key: outcomes.finish(tx, ME, {key: FAILED}, BACKOFF, charge=Charge(3)),
    ],
)
@pytest.mark.parametrize(("own", "seconds"), [(None, 7), (RetryPolicy(timedelta(seconds=3)), 3)])
def test_between_attempts_an_entry_waits_as_its_manifest_or_the_settings_say(
    store: Store, end: Callable[[Transaction, int], object], own: RetryPolicy | None, seconds: int
) -> None:
    declare(store, a_manifest(retry=own))
    one = started(store, source=Source.TRIGGER, max_attempts=2)
    with store.writing() as tx:
        end(tx, one.id)
    [row] = rows_of(store, queue_table)
    assert (row["id"], row["attempts"], row["delayed"]) == (one.entry_id, 1, True)
    assert row["scheduled_at"] == NOON + timedelta(seconds=seconds)


def test_what_nobody_picked_up_waits_as_long_for_its_next_attempt(store: Store) -> None:
    declare(store, "extract")
    dispatched(store, source=Source.TRIGGER, max_attempts=2)
    with store.writing() as tx:
        outcomes.fail_stale_pending(tx, NOON + timedelta(seconds=1), backoff=BACKOFF)
    [row] = rows_of(store, queue_table)
    assert (row["attempts"], row["scheduled_at"]) == (1, NOON + timedelta(seconds=7))
