"""The read side shows the system as it stands."""

from __future__ import annotations

from datetime import timedelta

from headway.domain.execution import ExecutionState
from headway.domain.manifest import Group
from headway.domain.schedule import cron
from headway.domain.views import GroupOverview
from headway.domain.work_queue import Source
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.reading.executions import list_executions
from headway.store.reading.groups import list_groups
from headway.store.reading.manifests import list_manifests
from headway.store.reading.queue import list_queued
from tests.store.factories import (
    CANCELLED,
    FAILED,
    NOON,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    dead_letter_for,
    declare,
    dispatched,
    queue,
    queue_ad_hoc,
    ran,
    started,
)


def ids_of(store: Store, **wanted: object) -> list[int]:
    with store.reading() as tx:
        return [one.id for one in list_executions(tx, **wanted)]  # type: ignore[arg-type]


def test_executions_live_and_finished_are_listed_newest_last(store: Store) -> None:
    declare(store, "extract", "load")
    done, failed = ran(store), ran(store, outcome=FAILED)
    running, pending = started(store), dispatched(store, "load")
    everything = [done.id, failed.id, running.id, pending]
    assert ids_of(store) == everything
    assert ids_of(store, limit=2) == everything[-2:]
    assert ids_of(store, external_id="extract") == everything[:3]
    assert ids_of(store, external_id="extract", limit=1) == [running.id]
    assert ids_of(store, external_id="nobody") == []
    ended = [ExecutionState.COMPLETED, ExecutionState.FAILED]
    assert ids_of(store, states=ended) == [done.id, failed.id]
    assert ids_of(store, states=[ExecutionState.PENDING], external_id="extract") == []


def test_a_listed_execution_says_everything_about_its_run(store: Store) -> None:
    declare(store, "extract")
    failed = ran(store, outcome=FAILED)
    with store.reading() as tx:
        [listed] = list_executions(tx)
    assert listed == failed
    assert (listed.external_id, listed.group_name, listed.failure) == (
        "extract",
        "etl",
        FAILED.failure,
    )


def test_what_waits_in_the_queue_is_listed_oldest_first(store: Store) -> None:
    ids = declare(store, "extract", "cancelled")
    later = NOON + timedelta(hours=1)
    first = queue(store, priority=4, scheduled_for=NOON)
    second = queue_ad_hoc(store, scheduled_at=later, input="[1]")
    queue(store, "cancelled")
    with store.writing() as tx:
        work_queue.cancel_queued(tx, [ids["cancelled"]], "not today")
    with store.reading() as tx:
        entries = list_queued(tx)
        assert list_queued(tx, 1) == entries[:1]
    scheduled, ad_hoc = entries
    assert (scheduled.id, scheduled.external_id, scheduled.group_name) == (first, "extract", "etl")
    assert (scheduled.source, scheduled.priority) == (Source.SCHEDULE, 4)
    assert (scheduled.created_at, scheduled.scheduled_for) == (NOON, NOON)
    assert (ad_hoc.id, ad_hoc.external_id, ad_hoc.group_name) == (second, None, None)
    assert (ad_hoc.scheduled_at, ad_hoc.input) == (later, "[1]")


def test_groups_are_listed_with_what_they_hold(store: Store) -> None:
    loads = Group("loads", 4, 20)
    declare(store, "one", "two", "three", a_manifest("load", group=loads), groups=[loads])
    apply(
        store,
        a_declaration(a_manifest("one"), a_manifest("two"), a_manifest("load", group=loads)),
    )
    ran(store, "one")
    for outcome in (FAILED, FAILED, CANCELLED):
        ran(store, "two", outcome)
    dead_letter_for(store, "two")
    started(store, "one")
    queue(store, "two")
    queue(store, "two", source=Source.TRIGGER)
    queue_ad_hoc(store)
    dispatched(store, "load")
    with store.reading() as tx:
        etl, listed_loads = list_groups(tx)
    assert etl == GroupOverview(
        name="etl",
        max_active_jobs=None,
        priority=0,
        enabled=True,
        manifests=2,
        queued=2,
        active=1,
        completed=1,
        failed=2,
        dead_letters=1,
        cancelled=1,
    )
    assert (listed_loads.name, listed_loads.max_active_jobs, listed_loads.priority) == (
        "loads",
        4,
        20,
    )
    assert (listed_loads.active, listed_loads.queued, listed_loads.dead_letters) == (1, 0, 0)


def test_manifests_are_listed_by_name_without_removed_ones(store: Store, clock: Clock) -> None:
    declare(store, "b", a_manifest("a", schedule=cron("0 * * * *"), enabled=False), "removed")
    kept = [a_manifest("b"), a_manifest("a", schedule=cron("0 * * * *"), enabled=False)]
    apply(store, a_declaration(*kept))
    later = clock.advance(minutes=1)
    ran(store, "b")
    with store.reading() as tx:
        first, second = list_manifests(tx)
    assert (first.external_id, first.schedule_kind, first.enabled) == ("a", "cron", False)
    assert (first.last_success_at, first.settled_until, first.wake_at) == (None, None, NOON)
    assert (second.external_id, second.group_name, second.workflow) == ("b", "etl", "work")
    assert (second.last_success_at, second.settled_until) == (later, later)


def test_an_empty_store_lists_nothing(store: Store) -> None:
    with store.reading() as tx:
        assert list_executions(tx) == []
        assert list_queued(tx) == []
        assert list_groups(tx) == []
        assert list_manifests(tx) == []
