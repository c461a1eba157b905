"""What is old enough goes, in bounded batches; what still matters never does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import event, update

from headway.config import Settings
from headway.domain.execution import ExecutionState, Outcome
from headway.domain.manifest import Group
from headway.domain.schedule import Never
from headway.domain.work_queue import NewEntry, Source
from headway.history import Retained, Retention
from headway.observe import Event, Observer
from headway.store import removal, retention, work_queue
from headway.store.engine import Store
from headway.store.retention import Page
from headway.store.tables import (
    dead_letter,
    declaration,
    execution,
    execution_history,
    manifest,
    manifest_group,
    manifest_state,
)
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from tests.store.factories import (
    CANCELLED,
    FAILED,
    NOON,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    change_state,
    dead_letter_for,
    declare,
    dispatched,
    finish,
    queue,
    queue_ad_hoc,
    ran,
    rows_of,
    started,
    view_of,
)

Verb = Callable[[Transaction, datetime, int], Page | int]


def purge(store: Store, verb: Verb, before: datetime, limit: int = 1000) -> int:
    with store.writing() as tx:
        done = verb(tx, before, limit)
    return done.deleted if isinstance(done, Page) else done


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
    assert purge(store, retention.delete_finished, later) == 1, "and the success is the newest"
    assert view_of(store, "failing").failed_count == 2
    change_state(store, "failing", failures_after=failures[-1].id)
    assert purge(store, retention.delete_finished, later) == 2


@pytest.mark.story(22)
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
    ended = [ran(store, source=Source.TRIGGER).id for _ in range(6)]
    later = clock.now + timedelta(days=1)
    assert purge(store, retention.delete_finished, later, limit) == limit
    assert [row["id"] for row in rows_of(store, execution_history)] == ended[limit:]


def test_the_newest_success_of_each_manifest_is_kept_whatever_its_age(
    store: Store, clock: Clock
) -> None:
    declare(store, "yearly", "daily")
    kept = {ran(store, "yearly").id}
    ran(store, "daily")
    clock.advance(days=1)
    kept |= {ran(store, "daily").id}
    ran(store, "daily", CANCELLED)
    later = clock.advance(days=365)
    assert purge(store, retention.delete_finished, later) == 2
    assert {row["id"] for row in rows_of(store, execution_history)} == kept
    assert purge(store, retention.delete_finished, later) == 0


def test_what_is_kept_is_passed_by_once_and_not_met_by_every_batch(
    store: Store, clock: Clock
) -> None:
    declare(store, *(f"kept-{number}" for number in range(4)), "busy")
    for number in range(4):
        ran(store, f"kept-{number}")
    for _ in range(4):
        ran(store, "busy")
    later = clock.advance(days=1)
    place, deleted = None, []
    for _ in range(5):
        with store.writing() as tx:
            page = retention.delete_finished(tx, later, 2, place)
        place = page.next_place
        deleted.append(page.deleted)
    assert deleted == [0, 0, 2, 1, 0], "four kept, then three of the busy one's four"
    assert place is None


def test_what_an_open_dead_letter_waits_with_is_kept(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    failed = ran(store, outcome=FAILED)
    dead_letter_for(store)
    triggered = ran(store, source=Source.TRIGGER)
    later = clock.advance(days=365)
    assert purge(store, retention.delete_finished, later) == 0
    assert [row["id"] for row in rows_of(store, execution_history)] == [failed.id, triggered.id]
    resolve_all(store)
    assert purge(store, retention.delete_finished, clock.advance(days=1)) == 1


def test_other_runs_of_a_manifest_with_an_open_dead_letter_go(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    ran(store, outcome=CANCELLED)
    failed = ran(store, outcome=FAILED)
    dead_letter_for(store)
    change_state(store, "extract", failures_after=failed.id)
    ran(store, outcome=CANCELLED)
    later = clock.advance(days=365)
    assert purge(store, retention.delete_finished, later) == 2
    assert [row["id"] for row in rows_of(store, execution_history)] == [failed.id]


def resolve_all(store: Store) -> None:
    with store.writing() as tx:
        tx.connection.execute(update(dead_letter).values(status="acknowledged", resolved_at=tx.now))


def test_a_removed_manifest_goes_once_nothing_of_it_is_left(store: Store, clock: Clock) -> None:
    ids = declare(store, "parent", a_manifest("removed", parents=("parent",), schedule=Never()))
    ran(store, "removed", FAILED)
    dead_letter_for(store, "removed")
    entry = queue(store, "removed")
    with store.writing() as tx:
        removal.remove(tx, [ids["removed"]])
    later = clock.advance(days=365)
    gone = partial(purge, store, retention.delete_removed_manifests)
    assert gone(later) == 0, "there is a history"
    resolve_all(store)
    assert purge(store, retention.delete_finished, later) == 1, "its failures count no more"
    assert gone(later) == 0, "there is a dead letter"
    later = clock.advance(days=1)
    assert purge(store, retention.delete_resolved_dead_letters, later) == 1
    assert gone(later) == 0, "there is an entry that ended"
    assert purge(store, retention.delete_ended_entries, later) == 1, entry
    assert gone(NOON) == 0, "removed too short a while ago"
    assert gone(later) == 1
    assert [row["external_id"] for row in rows_of(store, manifest)] == ["parent"]
    assert [row["manifest_id"] for row in rows_of(store, manifest_state)] == [ids["parent"]]


def test_a_removed_manifest_stays_as_long_as_its_dead_letter(store: Store, clock: Clock) -> None:
    """A letter may be kept for longer than runs are, or for ever."""
    ids = declare(store, "extract")
    dead_letter_for(store)
    with store.writing() as tx:
        removal.remove(tx, [ids["extract"]])
    resolve_all(store)
    later = clock.advance(days=365)
    assert purge(store, retention.delete_removed_manifests, later) == 0
    assert purge(store, retention.delete_resolved_dead_letters, later) == 1
    assert purge(store, retention.delete_removed_manifests, later) == 1


def test_a_removed_manifest_that_still_runs_stays(store: Store, clock: Clock) -> None:
    ids = declare(store, "extract")
    started(store)
    with store.writing() as tx:
        removal.remove(tx, [ids["extract"]])
    later = clock.advance(days=365)
    assert purge(store, retention.delete_removed_manifests, later) == 0


def test_a_group_without_manifests_goes_unless_code_declares_it(store: Store, clock: Clock) -> None:
    declared = Group("declared", max_active_jobs=2)
    ids = declare(
        store,
        a_manifest("a", group=declared),
        a_manifest("b", group=Group("own")),
        groups=[declared],
    )
    later = clock.advance(days=365)
    assert purge(store, retention.delete_empty_groups, later) == 0
    with store.writing() as tx:
        removal.remove(tx, list(ids.values()))
    later = clock.advance(days=365)
    assert purge(store, retention.delete_removed_manifests, later) == 2
    assert purge(store, retention.delete_empty_groups, NOON) == 0, "changed too short a while ago"
    assert purge(store, retention.delete_empty_groups, later) == 1
    assert [row["name"] for row in rows_of(store, manifest_group)] == ["declared"]


def test_a_group_stays_as_long_as_a_run_of_it_is_live(store: Store, clock: Clock) -> None:
    """Its manifest has moved to another group meanwhile."""
    declare(store, a_manifest("extract", group=Group("before")))
    one = started(store, source=Source.TRIGGER)
    declare(store, a_manifest("extract", group=Group("afterwards")))
    later = clock.advance(days=365)
    assert purge(store, retention.delete_empty_groups, later) == 0
    finish(store, one)
    assert purge(store, retention.delete_empty_groups, later) == 1
    assert [row["name"] for row in rows_of(store, manifest_group)] == ["afterwards"]


def test_a_group_that_is_referred_to_before_its_deletion_stays(
    store: Store, second: Store, clock: Clock
) -> None:
    """Between the look for empty groups and their deletion another server queues an entry."""
    ids = declare(store, a_manifest("extract", group=Group("empty")))
    [group] = rows_of(store, manifest_group)
    with store.writing() as tx:
        removal.remove(tx, list(ids.values()))
    later = clock.advance(days=365)
    assert purge(store, retention.delete_removed_manifests, later) == 1
    with store.writing() as tx:

        def refer(_c: object, _u: object, statement: str, *_more: object) -> None:
            if statement.startswith("DELETE") and not queued:
                # On SQLite this transaction is the only one that may write.
                if store.on_postgresql:
                    queued.append(queue_ad_hoc(second, group_id=group["id"]))
                else:
                    entry = NewEntry("work", Source.AD_HOC, "null", group_id=group["id"])
                    queued.append(*work_queue.enqueue(tx, [entry]))

        queued: list[int] = []
        event.listen(tx.connection, "before_cursor_execute", refer)
        assert retention.delete_empty_groups(tx, later, 10) == 0
    assert queued
    assert [row["name"] for row in rows_of(store, manifest_group)] == ["empty"]


def test_the_newest_declarations_of_each_application_are_kept(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "DECLARATIONS_KEPT", 2)
    for number in range(4):
        apply(store, a_declaration(a_manifest(f"a-{number}"), application="a"))
    apply(store, a_declaration(a_manifest("b"), application="b"))
    applied = [row["id"] for row in rows_of(store, declaration)]
    later = clock.advance(days=365)
    assert purge(store, retention.delete_old_declarations, NOON) == 0
    assert purge(store, retention.delete_old_declarations, later, limit=1) == 1
    assert purge(store, retention.delete_old_declarations, later) == 1
    left = [row["application"] for row in rows_of(store, declaration)]
    assert left == ["a", "a", "b"]
    assert [row["id"] for row in rows_of(store, declaration)] == applied[2:]


def test_a_pass_tells_what_it_deleted_of_each_kind(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    for _ in range(3):
        ran(store, source=Source.TRIGGER)
    clock.advance(days=31)
    observer, told = Observer(), list[Event]()
    observer.subscribe(told.append)
    cleaner = Retention(store, Settings(delete_batch_size=2), observer)
    passes = [cleaner.run_once() for _ in range(3)]
    assert [(one.executions, one.more) for one in passes] == [(2, True), (0, False), (0, False)]
    assert told[0].fields == {
        "executions": 2,
        "entries": 0,
        "dead_letters": 0,
        "manifests": 0,
        "groups": 0,
        "declarations": 0,
        "workorders": 0,
        "events": 0,
        "snapshots": 0,
        "claims": 0,
        "queries": 0,
        "pauses": 0,
        "pages": 0,
        "captures": 0,
        "objectives": 0,
        "nonces": 0,
        "answers": 0,
        "logouts": 0,
        "tries": 0,
        "tallies": 0,
        "audit": 0,
    }


def test_dead_letters_have_a_period_of_their_own(store: Store, clock: Clock) -> None:
    declare(store, "extract")
    dead_letter_for(store)
    resolve_all(store)
    settings = Settings(retention_period="30d", dead_letter_retention_period="90d")
    cleaner = Retention(store, settings, Observer())
    deleted = []
    for _ in range(2):
        clock.advance(days=46)
        deleted.append(sum(cleaner.run_once().dead_letters for _ in range(2)))
    assert deleted == [0, 1], "after 46 and after 92 days"


def test_after_the_executions_the_others_go_on_until_nothing_is_left(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, *(f"m-{number}" for number in range(5)))
    ran(store, "m-0")
    for name in ids:
        queue(store, name)
    with store.writing() as tx:
        removal.remove(tx, list(ids.values()))
    clock.advance(days=31)
    cleaner = Retention(store, Settings(delete_batch_size=2), Observer())
    passes: list[Retained] = []
    while not passes or passes[-1].more:
        passes.append(cleaner.run_once())
    assert [one.executions for one in passes] == [1, 0, 0]
    assert [one.entries for one in passes] == [2, 2, 1]
    assert sum(one.manifests for one in passes) == 5
    assert sum(one.groups for one in passes) == 1
    assert rows_of(store, manifest) == []
    assert rows_of(store, manifest_group) == []
