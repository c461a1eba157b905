"""Rules of seed 003 that no other test shows, through the real manager on both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from cronsim import CronSim
from sqlalchemy import delete, event, select

from headway import Group, Item, cron, every
from headway.definition.interventions import DeadLetters
from headway.definition.runtime import Runtime
from headway.domain import wall_clock
from headway.domain.execution import ExecutionState
from headway.domain.manifest import ManifestDispatchView
from headway.domain.schedule import Schedule
from headway.domain.work_queue import NewEntry, Source
from headway.manager import chunk
from headway.manager.cycle import ManagerResult
from headway.manager.decide import Verdict
from headway.manager.load import load_manifests
from headway.manager.queue import determine_jobs_to_queue
from headway.manager.state import ManagerEnv, ManagerState
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.tables import dead_letter, execution_history
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from tests.builders import START, Scene, names, reasons

FAILED = ExecutionState.FAILED
NO_CONNECTION: Any = None


def declare(scene: Scene, external_id: str = "load", **options: Any) -> None:
    scene.app.schedule("work", external_id, None, every(hours=1), **options)
    scene.apply()


def start(scene: Scene) -> None:
    """Take what is due as far as a worker that then says nothing more."""
    scene.manage()
    scene.dispatch()
    scene.claim()


def run_again(scene: Scene) -> Counter[ExecutionState]:
    """Run what is due, however long it has to wait for its turn; tells how it ended."""
    scene.manage()
    scene.clock.advance(hours=2)
    scene.manage()
    scene.dispatch()
    return Counter(scene.run().ended)


def fail(scene: Scene) -> None:
    scene.failing = {"load"}
    assert run_again(scene) == {FAILED: 1}


def succeed(scene: Scene) -> None:
    scene.failing = set()
    assert run_again(scene) == {ExecutionState.COMPLETED: 1}


# The manager decides and queues, and leaves the rest to others


def test_the_manager_queues_what_is_due_and_dispatches_nothing(scene: Scene) -> None:
    declare(scene)

    assert [scene.manage().queued for _ in range(3)] == [1, 0, 0]

    assert names(scene.history.queue.all()) == ["load"]
    assert scene.history.executions.all() == [], (
        "neither a run of the job nor one of the manager's own"
    )
    assert len(scene.dispatch().dispatched) == 1


def test_schedule_trigger_rerun_and_requeue_all_go_through_the_queue(scene: Scene) -> None:
    runtime = Runtime("tests", scene.app.registry, scene.store)
    declare(scene, "load", max_retries=1)
    fail(scene)
    scene.manage()
    scene.failing = set()
    declare(scene, "by-time")
    scene.app.schedule("work", "by-hand")
    scene.app.schedule("work", "again")
    scene.apply()
    scene.manage()
    runtime.trigger("by-hand")
    scene.trigger("again")
    manifest_id, group_id = scene.ids_of("again")
    scene.enqueue(
        NewEntry("work", Source.RERUN, "null", manifest_id=manifest_id, group_id=group_id)
    )
    runtime.dead_letters.requeue_all()
    runtime.enqueue("work")

    before = scene.history.executions.all()
    assert [one.state for one in before] == [FAILED], "asking starts nothing"
    waiting = {(one.id, one.source) for one in scene.history.queue.all()}
    assert {source for _, source in waiting} == {
        Source.SCHEDULE,
        Source.TRIGGER,
        Source.RERUN,
        Source.REQUEUE,
        Source.AD_HOC,
    }
    while scene.dispatch().dispatched:
        scene.run()
    ran = scene.ended(ExecutionState.COMPLETED)
    assert {(one.entry_id, one.source) for one in ran} == waiting
    assert scene.history.queue.all() == []


# LoadManifests


def never_ran(scene: Scene) -> None: ...


def queued(scene: Scene) -> None:
    scene.manage()


def pending(scene: Scene) -> None:
    scene.manage()
    scene.dispatch()


def failed_twice(scene: Scene) -> None:
    fail(scene)
    fail(scene)


def succeeded(scene: Scene) -> None:
    scene.cycle()


def failed_after_a_success(scene: Scene) -> None:
    scene.cycle()
    fail(scene)


def dead_lettered(scene: Scene) -> None:
    for _ in range(3):
        fail(scene)
    assert scene.manage().dead_lettered == 1


# failed_count, has_awaiting_dead_letter, has_queued_work, has_active_execution and
# has_successful_execution of the view
FLAGS: dict[str, tuple[Callable[[Scene], None], tuple[int, bool, bool, bool, bool]]] = {
    "never ran": (never_ran, (0, False, False, False, False)),
    "queued": (queued, (0, False, True, False, False)),
    "pending": (pending, (0, False, False, True, False)),
    "in progress": (start, (0, False, False, True, False)),
    "failed twice": (failed_twice, (2, False, False, False, False)),
    "succeeded": (succeeded, (0, False, False, False, True)),
    "failed after a success": (failed_after_a_success, (1, False, False, False, True)),
    "dead-lettered": (dead_lettered, (3, True, False, False, False)),
}


def view_of(result: ManagerResult, external_id: str = "load") -> ManifestDispatchView:
    [view] = [one.view for one in result.decisions if one.view.external_id == external_id]
    return view


@pytest.mark.parametrize("row", FLAGS)
def test_a_view_carries_the_five_flags(scene: Scene, row: str) -> None:
    arrange, flags = FLAGS[row]
    declare(scene)
    arrange(scene)
    scene.wake("load")

    view = view_of(scene.manage())

    assert flags == (
        view.failed_count,
        view.has_awaiting_dead_letter,
        view.has_queued_work,
        view.has_active_execution,
        view.has_successful_execution,
    )


def test_a_view_is_a_snapshot_that_cannot_be_changed(scene: Scene) -> None:
    declare(scene)
    view = view_of(scene.manage())

    with pytest.raises(AttributeError):
        view.enabled = False  # type: ignore[misc]
    assert not view.has_queued_work, "as it was before this cycle queued it"


@dataclass
class Reads:
    """What was asked of the database, and how many rows it answered with."""

    statements: int = 0
    rows: int = 0


@contextmanager
def counted(store: Store) -> Iterator[Reads]:
    reads = Reads()

    def note(_c: Any, cursor: Any, *_more: Any) -> None:
        reads.statements += 1
        reads.rows += max(cursor.rowcount, 0) if store.on_postgresql else 0

    def note_row(_cursor: Any, row: Any) -> Any:
        reads.rows += 1
        return row

    def rows_through(factory: Any) -> None:
        """SQLite does not know how many rows there are until they have been fetched."""
        if not store.on_postgresql:
            with store.writing() as tx:
                tx.connection.connection.dbapi_connection.row_factory = factory  # type: ignore[union-attr]

    rows_through(note_row)
    event.listen(store._writer, "after_cursor_execute", note)
    yield reads
    event.remove(store._writer, "after_cursor_execute", note)
    rows_through(None)


def due_cycle(scene: Scene, due: int = 1) -> Reads:
    """What the cycle reads that finds this many manifests due, each a success behind it."""
    succeed(scene)
    scene.manage()
    scene.clock.advance(hours=2)
    with counted(scene.store) as reads:
        assert scene.manage().queued == due
    return reads


def test_what_a_cycle_reads_does_not_grow_with_the_history(scene: Scene) -> None:
    declare(scene)
    at_first = due_cycle(scene)
    for _ in range(3):
        for _ in range(3):
            fail(scene)
        assert scene.manage().dead_lettered == 1
        DeadLetters(scene.store, scene.app.registry).acknowledge_all()
        succeed(scene)
    manifest_id, _ = scene.ids_of("load")
    scene.enqueue(*[NewEntry("work", Source.TRIGGER, "null", manifest_id=manifest_id)] * 20)
    with scene.store.writing() as tx:
        assert work_queue.cancel_queued(tx, [manifest_id], "enough") == 20

    assert at_first.rows > 0
    assert due_cycle(scene) == at_first


def test_what_a_cycle_reads_does_not_grow_with_the_manifests_that_sleep(scene: Scene) -> None:
    declare(scene)
    at_first = due_cycle(scene)
    items = [Item(number) for number in range(300)]
    scene.app.schedule_many(
        "work", "asleep", items, every(days=30), first_run="at_first_occurrence"
    )
    scene.apply()

    assert due_cycle(scene) == at_first


def test_a_cycle_sends_as_many_statements_for_a_hundred_as_for_one(scene: Scene) -> None:
    """No manifest, and no parent of one, is looked up on its own (W36)."""
    scene.configure(max_active_jobs=None)
    sent = {}
    for count in (1, 100):
        root = scene.app.schedule("work", f"root-{count}", None, every(days=1))
        root.include_many("work", f"child-{count}", [Item(number) for number in range(count)])
        scene.apply()
        scene.cycle()
        with counted(scene.store) as reads:
            assert scene.manage().queued == count
        sent[count] = reads.statements

    assert sent[100] == sent[1] > 0


def test_decisions_are_made_from_the_views_without_asking_the_database(scene: Scene) -> None:
    declare(scene, "load")
    declare(scene, "other")
    dead, _ = scene.ids_of("other")
    with scene.store.leading(Lock.MANAGE) as tx:
        assert tx is not None
        env = ManagerEnv(tx, scene.app.settings, chunk=100)
        loaded = replace(load_manifests(ManagerState(), env), dead_lettered=(dead,))
        nobody = replace(env, tx=Transaction(NO_CONNECTION, tx.now))
        decided = determine_jobs_to_queue(loaded, nobody)

    assert {one.view.external_id: (one.verdict, one.reason) for one in decided.decisions} == {
        "load": (Verdict.QUEUE, "first run"),
        "other": (Verdict.SKIP, "dead-lettered in this cycle"),
    }


# CancelTimedOutJobs and the reapers


def test_a_run_is_asked_to_stop_long_before_it_is_failed_by_force(scene: Scene) -> None:
    declare(scene)
    start(scene)
    happened = {}
    for minute in (20, 21, 60, 61):
        scene.clock.now = START + timedelta(minutes=minute)
        result = scene.manage()
        happened[minute] = (result.cancelled, result.reaped_in_progress)

    assert happened == {20: (0, 0), 21: (1, 0), 60: (0, 0), 61: (0, 1)}


def test_timeouts_hold_for_disabled_manifests_and_for_runs_without_one(scene: Scene) -> None:
    """W15."""
    declare(scene)
    scene.pending("work")
    start(scene)
    Runtime("tests", scene.app.registry, scene.store).disable("load")
    scene.clock.advance(minutes=21)

    assert scene.manage().cancelled == 2
    scene.clock.advance(minutes=40)
    assert scene.manage().reaped_in_progress == 2


def test_the_reapers_see_the_runs_of_all_manifests_however_small_the_chunk(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        declare(scene, f"load-{number}", max_retries=1)
    start(scene)
    scene.clock.advance(minutes=61)
    monkeypatch.setattr(chunk, "LARGEST", 1)

    result = scene.manage()

    assert (result.reaped_in_progress, result.dead_lettered) == (6, 6)


# ReapFailedJobs


@pytest.mark.parametrize("max_retries", [1, 2, 4])
def test_a_dead_letter_comes_with_the_failure_that_reaches_max_retries(
    scene: Scene, max_retries: int
) -> None:
    declare(scene, max_retries=max_retries)
    for _ in range(max_retries):
        assert scene.history.dead_letters.awaiting() == []
        fail(scene)
    assert scene.manage().dead_lettered == 1

    [letter] = scene.history.dead_letters.awaiting()
    assert (letter.status, letter.failures) == ("awaiting_intervention", max_retries)


def test_a_manifest_has_one_dead_letter_however_often_it_fails_after_that(scene: Scene) -> None:
    declare(scene, max_retries=1)
    fail(scene)
    assert scene.manage().dead_lettered == 1
    for _ in range(3):
        scene.trigger("load")
        scene.dispatch()
        assert scene.run().ended == {FAILED: 1}
        assert scene.manage().dead_lettered == 0

    with scene.store.reading() as tx:
        assert len(tx.connection.execute(select(dead_letter)).all()) == 1


RESOLUTIONS: dict[str, Callable[[DeadLetters], Any]] = {
    "requeued": lambda letters: letters.requeue_all(),
    "acknowledged": lambda letters: letters.acknowledge_all(),
}


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_failures_are_counted_anew_once_a_dead_letter_is_resolved(
    scene: Scene, resolution: str
) -> None:
    declare(scene, max_retries=2)
    fail(scene)
    fail(scene)
    assert scene.manage().dead_lettered == 1
    RESOLUTIONS[resolution](DeadLetters(scene.store, scene.app.registry))
    assert scene.manage().dead_lettered == 0, "old failures are dealt with"

    fail(scene)
    result = scene.manage()
    assert (result.dead_lettered, view_of(result).failed_count) == (0, 1)
    fail(scene)
    assert scene.manage().dead_lettered == 1
    [letter] = scene.history.dead_letters.awaiting()
    assert letter.failures == 2


def test_one_failure_a_month_never_makes_a_dead_letter(scene: Scene) -> None:
    """W4: with the default of three, over a year."""
    declare(scene)
    for _ in range(12):
        fail(scene)
        succeed(scene)
        assert scene.manage().dead_lettered == 0
        scene.clock.advance(days=30)

    assert len(scene.ended(FAILED)) == 12
    assert scene.history.dead_letters.awaiting() == []


# DetermineJobsToQueue


@pytest.mark.parametrize(
    ("schedule", "ran_at"),
    [
        (every(minutes=40), [0, 40, 80, 120]),
        (cron("*/45 * * * *"), [0, 45, 60, 105, 120]),
    ],
    ids=["interval", "cron"],
)
def test_an_interval_is_counted_from_the_last_run_and_cron_keeps_to_the_clock(
    scene: Scene, schedule: Schedule, ran_at: list[int]
) -> None:
    scene.app.schedule("work", "load", None, schedule)
    scene.apply()
    for minute in range(0, 125, 5):
        scene.clock.now = START + timedelta(minutes=minute)
        scene.cycle()

    ran = [one.started_at or START for one in scene.ended(ExecutionState.COMPLETED)]
    assert [(moment - START) / timedelta(minutes=1) for moment in ran] == ran_at


def test_a_dormant_dependent_is_never_due_whatever_wakes_it(scene: Scene) -> None:
    chain = scene.app.schedule("work", "extract", None, every(hours=1))
    chain.include("work", "dormant", None, dormant=True)
    scene.apply()
    for _ in range(3):
        scene.cycle()
        scene.wake("dormant")
        result = scene.manage()
        assert reasons(result)["dormant"] == "dormant: runs only when its parent activates it"
        scene.clock.advance(hours=1)

    assert {one.external_id for one in scene.history.executions.all()} == {"extract"}
    assert scene.history.queue.all() == []


@pytest.mark.story(22)
def test_a_parents_success_counts_although_its_record_is_gone(scene: Scene) -> None:
    chain = scene.app.schedule("work", "extract", None, every(hours=1))
    chain.then_include("work", "load", None)
    scene.apply()
    scene.cycle()
    with scene.store.writing() as tx:
        tx.connection.execute(delete(execution_history))
    assert scene.history.executions.all() == []

    assert reasons(scene.manage())["load"] == "new success of 'extract'"
    assert names(scene.history.queue.all()) == ["load"]


def test_a_due_manifest_is_queued_however_full_everything_is(scene: Scene) -> None:
    """Capacity is for the dispatcher, and it alone keeps to the limits."""
    scene.configure(max_active_jobs=2)
    for number in range(5):
        declare(scene, f"load-{number}", group=Group("users", max_active_jobs=1))
    scene.pending("work")
    scene.pending("work")

    result = scene.manage()

    assert result.queued == 5 and set(reasons(result).values()) == {"first run"}
    assert scene.dispatch().dispatched == (), "the two that run fill the limit"
    scene.run()
    assert len(scene.dispatch().dispatched) == 1, "and then the cap of the group binds"


class CountingCronSim(CronSim):
    steps = 0

    def __next__(self) -> Any:
        CountingCronSim.steps += 1
        return super().__next__()


def test_a_cron_of_every_second_with_do_nothing_fires_after_any_outage(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W19: a month has 2.6 million occurrences, and none of them is walked."""
    scene.app.schedule("work", "load", None, cron("* * * * * *"), misfire="do_nothing")
    scene.apply()
    scene.cycle()
    monkeypatch.setattr(wall_clock, "CronSim", CountingCronSim)
    for outage in (timedelta(days=2), timedelta(days=30)):
        scene.clock.now += outage
        wall_clock._match.cache_clear()  # nobody has walked here before
        CountingCronSim.steps = 0
        assert scene.manage().queued == 1
        assert 0 < CountingCronSim.steps < 100
        [entry] = scene.history.queue.all()
        assert entry.scheduled_for == scene.clock.now
        scene.dispatch()
        scene.run()


# CreateWorkQueueEntries


def test_an_entry_has_what_its_manifest_and_group_say(scene: Scene) -> None:
    def copy(table: int) -> None: ...

    scene.app.workflow(copy)
    group = Group("users", priority=7)
    scene.app.schedule(copy, "load", 42, every(hours=1), group=group, priority=30)
    scene.apply()
    scene.manage()

    manifest_id, group_id = scene.ids_of("load")
    with scene.store.reading() as tx:
        entry = tx.connection.execute(select(queue_table)).one()._mapping
    expected = {
        "workflow": "copy",
        "input": "42",
        "input_type": "int",
        "manifest_id": manifest_id,
        "group_id": group_id,
        "priority": 7,
        "status": "queued",
        "source": "schedule",
    }
    assert {name: entry[name] for name in expected} == expected
