"""What the manager looks at: the wake inbox, candidates by wake-up time, views with guards."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import delete, insert, update

from headway.domain.execution import ExecutionState, Failure, FailureCode, Outcome
from headway.domain.manifest import Group
from headway.domain.schedule import Never, Schedule, cron, every, once
from headway.domain.work_queue import Source
from headway.store import dead_letters, manifests, removal, wakes
from headway.store.engine import Store
from headway.store.tables import dead_letter, dependency, manifest_state, wake
from headway.store.wakes import Scope
from tests.store.factories import (
    CANCELLED,
    FAILED,
    ME,
    NOBODY,
    NOON,
    Clock,
    a_declaration,
    a_manifest,
    apply,
    change_group,
    change_manifest,
    change_state,
    dead_letter_for,
    declare,
    dispatched,
    manifest_ids,
    queue,
    ran,
    rows_of,
    started,
    state_of,
    view_of,
)

LATER = NOON + timedelta(hours=1)
LOST = Outcome(ExecutionState.FAILED, Failure("load", FailureCode.WORKER_LOST, "gone"))


def asleep(store: Store, *external_ids: str) -> dict[str, int]:
    """Manifests nobody will look at, and an empty inbox."""
    ids = declare(store, *external_ids)
    with store.writing() as tx:
        wakes.set_wake_times(tx, dict.fromkeys(ids.values()))
        tx.connection.execute(delete(wake))
    return ids


def leave(store: Store, *left: tuple[int, Scope]) -> None:
    with store.writing() as tx:
        wakes.leave_wakes(tx, left)


def absorb(store: Store, limit: int = 100) -> int:
    with store.writing() as tx:
        return wakes.absorb_wakes(tx, limit)


def candidates(store: Store, limit: int = 100) -> list[int]:
    with store.writing() as tx:
        return manifests.due_candidates(tx, limit)


def test_a_new_manifest_is_a_candidate_at_once(store: Store) -> None:
    ids = declare(store, "extract", "load")
    assert candidates(store) == list(ids.values())


def test_candidates_are_those_whose_time_has_come_and_a_limit_takes_the_longest_waiting(
    store: Store, clock: Clock
) -> None:
    ids = asleep(store, "never", "later", "now", "earlier")
    with store.writing() as tx:
        times = {"later": LATER, "now": NOON, "earlier": NOON - timedelta(seconds=1)}
        wakes.set_wake_times(tx, {ids[name]: moment for name, moment in times.items()})
        wakes.set_wake_times(tx, {})
    assert set(candidates(store)) == {ids["earlier"], ids["now"]}
    assert candidates(store, limit=1) == [ids["earlier"]]
    clock.advance(hours=1)
    assert set(candidates(store)) == {ids["earlier"], ids["now"], ids["later"]}


def test_a_crowded_group_leaves_room_for_the_others(store: Store) -> None:
    crowd = [a_manifest(f"cache-{number}", group=Group("cache")) for number in range(20)]
    few = [a_manifest(f"delta-{number}", group=Group("delta")) for number in range(2)]
    ids = declare(store, *crowd, *few)
    with store.writing() as tx:
        early = NOON - timedelta(hours=1)
        wakes.set_wake_times(tx, {ids[one.external_id]: early for one in crowd})
        wakes.set_wake_times(tx, {ids[one.external_id]: NOON for one in few})
    assert {ids["delta-0"], ids["delta-1"]} < set(candidates(store, limit=4))


def test_who_looks_without_locking_sees_the_same_candidates(store: Store) -> None:
    crowd = [a_manifest(f"cache-{number}", group=Group("cache")) for number in range(9)]
    ids = declare(store, *crowd, *(a_manifest(name, group=Group("delta")) for name in ("a", "b")))
    with store.writing() as tx:
        early = NOON - timedelta(hours=1)
        wakes.set_wake_times(tx, {ids[one.external_id]: early for one in crowd})
        wakes.set_wake_times(tx, {ids["b"]: LATER})
    for limit in (3, 10, 11):
        with store.reading() as tx:
            seen = manifests.candidates_seen(tx, limit)
        assert seen == candidates(store, limit)
    assert len(seen) == 10


def test_all_manifests_are_viewed_some_at_a_time(store: Store) -> None:
    ids = declare(store, *(f"m-{number}" for number in range(5)))
    with store.writing() as tx:
        removal.remove(tx, [ids["m-1"]])
    with store.reading() as tx:
        first = manifests.load_next(tx, 0, 2)
        rest = manifests.load_next(tx, first[-1].manifest_id, 10)
        assert manifests.load_next(tx, rest[-1].manifest_id, 10) == []
    assert [[one.external_id for one in some] for some in (first, rest)] == [
        ["m-0", "m-2"],
        ["m-3", "m-4"],
    ]


def test_settling_never_goes_back(store: Store) -> None:
    ids = asleep(store, "one", "two", "three")
    later = NOON + timedelta(minutes=1)
    with store.writing() as tx:
        wakes.settle(tx, {ids["one"]: NOON, ids["two"]: later})
        wakes.settle(tx, {ids["one"]: later, ids["two"]: NOON})
        wakes.settle(tx, {})
    settled = [state_of(store, name).settled_until for name in ("one", "two", "three")]
    assert settled == [later, later, None]


def test_a_time_to_look_is_set_and_taken_away(store: Store) -> None:
    ids = asleep(store, "one", "two", "three")
    with store.writing() as tx:
        wakes.set_wake_times(tx, {ids["one"]: NOON, ids["two"]: LATER})
    with store.writing() as tx:
        times = {ids["one"]: None, ids["two"]: NOON}
        wakes.set_wake_times(tx, times, locked=times)
    found = [state_of(store, name).wake_at for name in ("one", "two", "three")]
    assert found == [None, NOON, None]


def test_a_view_of_what_failed_says_for_which_occurrence_and_when(
    store: Store, clock: Clock
) -> None:
    declare(store, "extract")
    assert view_of(store).last_failed_at is None
    ran(store, outcome=FAILED, scheduled_for=NOON - timedelta(hours=1))
    later = clock.advance(minutes=1)
    ran(store, outcome=FAILED, scheduled_for=NOON)
    view = view_of(store)
    assert (view.failed_count, view.last_failed_at, view.failed_for) == (2, later, NOON)
    assert (view.failed_for_good, view.retry_at) == (False, None)


def test_a_view_of_what_may_overlap_says_what_its_runs_stand_for(store: Store) -> None:
    declare(store, *(a_manifest(one, allow_overlap=True) for one in ("extract", "idle")), "alone")
    assert view_of(store).may_overlap and not view_of(store, "alone").may_overlap
    change_state(store, "extract", settled_until=NOON - timedelta(hours=3))
    for hours in (1, 2):
        started(store, scheduled_for=NOON - timedelta(hours=hours))
    started(store, "alone", scheduled_for=NOON)
    view = view_of(store)
    assert (view.settled_until, view.has_active_execution) == (NOON - timedelta(hours=1), True)
    assert view.may_overlap
    assert view_of(store, "alone").settled_until is None
    idle = view_of(store, "idle")
    assert (idle.settled_until, idle.has_active_execution) == (None, False)


def test_a_wake_for_oneself_wakes_nobody_else(store: Store) -> None:
    ids = asleep(store, "extract", "load")
    leave(store, (ids["load"], Scope.SELF))
    assert absorb(store) == 1
    assert candidates(store) == [ids["load"]]
    assert rows_of(store, wake) == []


def test_a_wake_for_children_wakes_them_and_not_the_parent(store: Store) -> None:
    ids = asleep(store, "parent", "one", "two", "stranger")
    with store.writing() as tx:
        edges = [{"child_id": ids[name], "parent_id": ids["parent"]} for name in ("one", "two")]
        tx.connection.execute(insert(dependency), edges)
    leave(store, (ids["parent"], Scope.CHILDREN))
    absorb(store)
    assert candidates(store) == [ids["one"], ids["two"]]


def test_a_wake_for_a_group_wakes_its_manifests(store: Store) -> None:
    declare(store, "extract", "load", a_manifest("report", group=Group("reports")))
    with store.writing() as tx:
        tx.connection.execute(update(manifest_state).values(wake_at=None))
    ids = manifest_ids(store)
    leave(store, (view_of(store, "extract").group_id, Scope.GROUP))
    absorb(store)
    assert candidates(store) == [ids["extract"], ids["load"]]


def test_a_wake_never_makes_anybody_wait_longer(store: Store, clock: Clock) -> None:
    ids = asleep(store, "overdue", "later")
    with store.writing() as tx:
        wakes.set_wake_times(tx, {ids["overdue"]: NOON - timedelta(hours=1), ids["later"]: LATER})
    leave(store, *((key, Scope.SELF) for key in ids.values()))
    absorb(store)
    assert state_of(store, "overdue").wake_at == NOON - timedelta(hours=1)
    assert state_of(store, "later").wake_at == NOON


def test_the_inbox_is_emptied_in_bounded_portions(store: Store) -> None:
    ids = asleep(store, "one", "two", "three")
    leave(store, *((key, Scope.SELF) for key in ids.values()))
    assert [absorb(store, limit=2) for _ in range(3)] == [2, 1, 0]
    assert len(candidates(store)) == 3


def test_a_wake_for_what_is_gone_is_absorbed_like_any_other(store: Store) -> None:
    asleep(store, "extract")
    leave(store, *((NOBODY, scope) for scope in Scope))
    assert absorb(store) == 3
    assert candidates(store) == []


def test_the_next_look_is_now_while_the_inbox_holds_something(store: Store) -> None:
    def next_look() -> datetime | None:
        with store.reading() as tx:
            return wakes.next_wake_at(tx)

    ids = asleep(store, "extract", "load")
    assert next_look() is None
    with store.writing() as tx:
        wakes.set_wake_times(tx, {ids["extract"]: LATER, ids["load"]: LATER + timedelta(hours=1)})
    assert next_look() == LATER
    leave(store, (ids["load"], Scope.SELF))
    assert next_look() == NOON


@pytest.mark.parametrize(
    "schedule",
    [every(minutes=5), cron("0 9 * * 1-5", "Europe/Berlin"), once(LATER), Never()],
    ids=lambda schedule: schedule.kind,
)
def test_a_view_shows_the_manifest_as_declared(store: Store, schedule: Schedule) -> None:
    item = a_manifest(schedule=schedule, input="[1]", input_type="list[int]", max_retries=7)
    group = Group("etl", 4, 20)
    key = declare(store, item, groups=[group])["extract"]
    view = view_of(store)
    assert (view.manifest_id, view.external_id, view.schedule) == (key, "extract", schedule)
    assert (view.workflow, view.input, view.input_type) == ("work", "[1]", "list[int]")
    assert (view.group_name, view.group_priority, view.max_retries) == ("etl", 20, 7)
    assert (view.settled_until, view.wake_at) == (None, NOON)
    guards = (view.has_awaiting_dead_letter, view.has_queued_work, view.has_active_execution)
    assert (view.enabled, view.group_enabled, *guards) == (True, True, False, False, False)
    assert (view.failed_count, view.has_successful_execution) == (0, False)


def test_views_are_of_the_manifests_asked_for_and_not_removed(store: Store) -> None:
    ids = declare(store, "one", "two", "removed")
    apply(store, a_declaration(a_manifest("one"), a_manifest("two")))
    with store.reading() as tx:
        assert manifests.load_views(tx, []) == []
        found = manifests.load_views(tx, [ids["two"], ids["removed"], NOBODY])
    assert [view.external_id for view in found] == ["two"]


def test_failures_are_counted_since_the_last_success(store: Store) -> None:
    declare(store, "extract", "load")
    for _ in range(2):
        ran(store, outcome=FAILED)
    ran(store, "load", FAILED)
    assert (view_of(store).failed_count, view_of(store, "load").failed_count) == (2, 1)
    ran(store)
    assert (view_of(store).failed_count, view_of(store, "load").failed_count) == (0, 1)
    assert view_of(store).has_successful_execution
    ran(store, outcome=FAILED)
    assert view_of(store).failed_count == 1


def test_failures_are_counted_since_the_last_resolution(store: Store) -> None:
    declare(store, "extract")
    last = [ran(store, outcome=FAILED) for _ in range(3)][-1]
    change_state(store, "extract", failures_after=last.id)
    assert view_of(store).failed_count == 0
    ran(store, outcome=FAILED)
    assert view_of(store).failed_count == 1


def test_lost_workers_cancelled_and_handed_back_runs_are_no_failures(store: Store) -> None:
    declare(store, "extract")
    handed_back = Outcome(ExecutionState.HANDED_BACK)
    for outcome in (LOST, CANCELLED):
        ran(store, outcome=outcome)
    ran(store, outcome=handed_back, source=Source.TRIGGER)
    assert view_of(store).failed_count == 0


def test_a_pending_or_running_execution_is_active(store: Store) -> None:
    declare(store, "pending", "running", "idle")
    dispatched(store, "pending")
    started(store, "running", ME)
    active = [view_of(store, name).has_active_execution for name in ("pending", "running", "idle")]
    assert active == [True, True, False]


@pytest.mark.parametrize(
    ("source", "delay", "guarded"),
    [
        (Source.SCHEDULE, None, True),
        (Source.SCHEDULE, timedelta(hours=1), True),
        (Source.DEPENDENT, timedelta(hours=1), True),
        (Source.ACTIVATION, None, True),
        (Source.TRIGGER, None, True),
        (Source.TRIGGER, timedelta(0), True),
        (Source.TRIGGER, timedelta(hours=1), False),
        (Source.REQUEUE, timedelta(hours=1), False),
    ],
)
def test_a_delayed_trigger_does_not_hold_the_schedule_back(
    store: Store, source: Source, delay: timedelta | None, guarded: bool
) -> None:
    declare(store, "extract")
    queue(store, source=source, scheduled_at=None if delay is None else NOON + delay)
    assert view_of(store).has_queued_work is guarded


def test_guards_follow_the_switches_of_manifest_and_group(store: Store) -> None:
    declare(store, "extract")
    change_manifest(store, "extract", enabled=False)
    change_group(store, "etl", enabled=False, priority=3)
    view = view_of(store)
    assert (view.enabled, view.group_enabled, view.group_priority) == (False, False, 3)


def test_a_dead_letter_guards_until_somebody_resolves_it(store: Store) -> None:
    key = declare(store, a_manifest(input="[1]"))["extract"]
    failed = ran(store, outcome=FAILED)
    dead_letter_for(store)
    dead_letter_for(store)
    assert view_of(store).has_awaiting_dead_letter
    with store.reading() as tx:
        [letter] = dead_letters.awaiting(tx)
    assert (letter.manifest_id, letter.failures, letter.dead_lettered_at) == (key, 3, NOON)
    [row] = rows_of(store, dead_letter)
    assert (row["execution_id"], row["input"]) == (failed.id, "[1]")
    with store.writing() as tx:
        resolved = {"status": "acknowledged", "resolved_at": NOON}
        tx.connection.execute(update(dead_letter).values(**resolved))
        assert dead_letters.awaiting(tx) == []
        assert dead_letters.create(tx, []) == []
    assert not view_of(store).has_awaiting_dead_letter
