"""Executions and queue entries as lists and pages show them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headway.domain.execution import ExecutionState, Failure, Outcome
from headway.domain.work_queue import Source
from headway.errors import EntryNotFound
from headway.history import (
    EntryOverview,
    ExecutionFilter,
    ExecutionOverview,
    History,
    QueuedEntry,
    Strip,
)
from headway.store import (
    executions,
    outcomes,
    work_queue,
)
from headway.store.engine import Store
from headway.store.executions import Progress
from headway.store.reading import execution_pages
from headway.store.reading.executions import attempts
from headway.store.tables import execution
from tests.history.test_pages import all_pages
from tests.history.test_tallies import remember
from tests.store.factories import (
    FAILED,
    ME,
    NOBODY,
    NOON,
    Clock,
    declare,
    dispatched,
    finish,
    manifest_ids,
    queue,
    queue_ad_hoc,
    ran,
    started,
)


def test_what_waits_of_a_manifest_is_shown_best_first(
    family: Store, history: History, clock: Clock
) -> None:
    old = queue(family, "stray", source=Source.TRIGGER)
    clock.advance(minutes=1)
    later = clock.now + timedelta(hours=1)
    best = queue(
        family,
        "stray",
        source=Source.TRIGGER,
        priority=9,
        attempts=1,
        max_attempts=3,
        scheduled_at=later,
        scheduled_for=NOON,
    )
    young = queue(family, "stray", source=Source.TRIGGER)
    queue(family, "extract", source=Source.TRIGGER)
    shown = history.manifests.detail("stray").entries
    assert [one.id for one in shown] == [best, old, young]
    assert shown[0] == EntryOverview(
        id=best,
        external_id="stray",
        workflow="work",
        group_name="extracts",
        group_priority=3,
        source=Source.TRIGGER,
        priority=9,
        created_at=clock.now,
        scheduled_at=later,
        scheduled_for=NOON,
        attempts=1,
        max_attempts=3,
        delayed=True,
    )


def test_one_entry_is_shown_with_its_input_as_long_as_it_waits(
    family: Store, history: History
) -> None:
    entry = queue(family, "stray", source=Source.TRIGGER, input="[1]", max_attempts=2, priority=4)
    alone = queue_ad_hoc(family)
    assert history.queue.detail(entry) == QueuedEntry(
        id=entry,
        external_id="stray",
        workflow="work",
        group_name="extracts",
        source=Source.TRIGGER,
        priority=4,
        input="[1]",
        created_at=NOON,
        scheduled_at=None,
        scheduled_for=None,
        attempts=0,
        max_attempts=2,
    )
    shown = history.queue.detail(alone)
    assert (shown.external_id, shown.group_name, shown.source) == (None, None, Source.AD_HOC)
    [listed] = [one for one in history.queue.page().items if one.id == alone]
    assert (listed.group_name, listed.group_priority) == (None, 0)
    with family.writing() as tx:
        work_queue.dispatch(tx, [entry])
    with pytest.raises(EntryNotFound):
        history.queue.detail(entry)


def test_an_execution_in_a_list_says_how_far_it_has_come(
    family: Store, history: History, clock: Clock
) -> None:
    entry = queue(family, "stray", source=Source.TRIGGER, scheduled_for=NOON, max_attempts=3)
    dispatched_at = clock.advance(seconds=1)
    with family.writing() as tx:
        key = work_queue.dispatch(tx, [entry])[entry]
    started_at = clock.advance(seconds=1)
    with family.writing() as tx:
        executions.claim_one(tx, ME, key)
    with family.writing() as tx:
        executions.note_progress(tx, ME, {key: Progress(0.5, "half of it")})
        executions.request_cancel(tx, [key], "not today")
    [shown] = history.executions.page().items
    assert shown == ExecutionOverview(
        id=key,
        entry_id=entry,
        external_id="stray",
        group_name="extracts",
        workflow="work",
        source=Source.TRIGGER,
        state=ExecutionState.IN_PROGRESS,
        attempt=1,
        max_attempts=3,
        crashes=0,
        queued_at=NOON,
        scheduled_for=NOON,
        dispatched_at=dispatched_at,
        started_at=started_at,
        finished_at=None,
        owner=ME,
        task_server="local",
        cancel_requested=True,
        running_step=shown.running_step,
        progress=0.5,
        progress_note="half of it",
        failure=None,
    )
    detail = history.executions.detail(key)
    assert (detail.cancel_reason, detail.input_type) == ("not today", "None")
    assert (detail.queued_at, detail.scheduled_at) == (NOON, None)
    assert [one.id for one in detail.attempts] == [key]


def test_an_execution_that_failed_shows_the_first_line_of_what_it_said(
    family: Store, history: History, clock: Clock
) -> None:
    one = started(family, "stray", scheduled_at=NOON)
    clock.advance(seconds=90)
    failure = Failure("load", "ValueError", "no rows\nat all")
    finish(family, one, Outcome(ExecutionState.FAILED, failure))
    [shown] = history.executions.page().items
    assert (shown.failure, shown.state) == ("load: ValueError: no rows", ExecutionState.FAILED)
    assert (shown.finished_at, shown.seconds) == (clock.now, 90)
    assert history.executions.detail(one.id).scheduled_at == NOON
    assert history.executions.these([one.id, NOBODY]) == {one.id: shown}


def test_all_attempts_of_an_entry_are_shown_oldest_first(
    family: Store, history: History, clock: Clock
) -> None:
    first = started(family, "stray", source=Source.TRIGGER)
    finish(family, first, Outcome(ExecutionState.HANDED_BACK))
    with family.writing() as tx:
        second = work_queue.dispatch(tx, [first.entry_id])[first.entry_id]
    ran(family, "extract")
    with family.reading() as tx:
        newest = attempts(tx, first.entry_id, 1)
    assert [one.id for one in newest] == [first.id, second], "one live and one that has ended"
    for key in (first.id, second):
        assert [one.id for one in history.executions.detail(key).attempts] == [first.id, second]


def test_of_many_attempts_the_newest_are_shown(family: Store) -> None:
    first = started(family, "stray", source=Source.TRIGGER)
    finish(family, first, Outcome(ExecutionState.HANDED_BACK))
    with family.writing() as tx:
        key = work_queue.dispatch(tx, [first.entry_id])[first.entry_id]
        second = executions.claim_one(tx, ME, key)
    assert second is not None
    finish(family, second)
    with family.reading() as tx:
        assert [one.id for one in attempts(tx, first.entry_id, 1)] == [second.id]
        assert [one.id for one in attempts(tx, first.entry_id, 2)] == [first.id, second.id]


def test_a_strip_says_how_long_each_run_took(family: Store, history: History, clock: Clock) -> None:
    waited = dispatched(family, "stray")
    clock.advance(seconds=5)
    with family.writing() as tx:
        outcomes.cancel_pending(tx, execution.c.id == waited, "not today")
    one = started(family, "stray")
    dispatched_at = clock.now
    clock.advance(seconds=90)
    finish(family, one, FAILED)
    key = manifest_ids(family)["stray"]
    assert history.manifests.strips([key], 2) == {
        key: (
            Strip(waited, ExecutionState.CANCELLED, NOON, None),
            Strip(one.id, ExecutionState.FAILED, dispatched_at, 90),
        )
    }


def test_the_last_runs_of_a_manifest_come_newest_first_live_or_finished(
    family: Store, history: History
) -> None:
    ended = [ran(family, "stray").id for _ in range(20)]
    live = started(family, "stray").id
    ran(family, "extract")
    shown = history.manifests.detail("stray").executions
    assert [one.id for one in shown] == [live, *ended[:0:-1]]


def test_no_execution_is_passed_over_where_many_live_ones_are_newer(
    store: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_pages, "EXAMINED", 2)
    names = [f"load-{number}" for number in range(6)]
    declare(store, *names)
    ended = [ran(store, name).id for name in names[:2]]
    live = [started(store, name).id for name in names[2:]]
    found = all_pages(history.executions.page, ExecutionFilter(workflow="work"), 10)
    assert [one.id for one in found] == [*reversed(live), *reversed(ended)]


def remembered(store: Store, *dispatched: timedelta, ended: timedelta = timedelta()) -> None:
    """Executions with the ids from 1 on, dispatched then, that ended at once or a while later."""
    runs = [
        {"state": "completed", "dispatched_at": NOON + one, "finished_at": NOON + one + ended}
        for one in dispatched
    ]
    remember(store, runs)


SECONDS = timedelta(seconds=30)
HOUR = timedelta(hours=1)


def test_a_page_since_a_moment_ends_where_all_that_is_left_is_too_early(
    store: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_pages, "EXAMINED", 2)
    remembered(store, -3 * HOUR, -2 * HOUR, -HOUR, timedelta(), timedelta())
    since = ExecutionFilter(since=NOON)
    first = history.executions.page(since)
    assert ([one.id for one in first.items], first.next is None) == ([5, 4], False)
    second = history.executions.page(since, first.next)
    assert (second.items, second.next) == ((), None)


def test_what_dispatchers_do_at_the_same_time_may_have_disordered_ids(
    store: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_pages, "EXAMINED", 1)
    remembered(store, timedelta(), -SECONDS, -SECONDS)
    found = all_pages(history.executions.page, ExecutionFilter(since=NOON))
    assert [one.id for one in found] == [1]


def test_what_was_dispatched_in_time_and_ended_much_later_is_found(
    store: Store, history: History
) -> None:
    remembered(store, -HOUR, ended=5 * HOUR)
    remembered(store, SECONDS, -SECONDS, 2 * HOUR)
    found = all_pages(history.executions.page, ExecutionFilter(until=NOON))
    assert [one.id for one in found] == [3, 1]


def test_a_page_up_to_a_moment_does_not_look_at_what_came_later(
    store: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_pages, "EXAMINED", 2)
    remembered(store, -HOUR, *(HOUR + number * SECONDS for number in range(120)))
    first = history.executions.page(ExecutionFilter(until=NOON))
    assert [one.id for one in first.items] == [1]
