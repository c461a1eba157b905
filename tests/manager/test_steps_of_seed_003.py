"""Seed 003: the seven steps, in its order, and what each of them does to a real store."""

from datetime import timedelta
from typing import Any

from sqlalchemy import text

from headway import Group, every
from headway.domain.execution import ExecutionState, FailureCode, Outcome
from headway.domain.work_queue import NewEntry, Source
from headway.manager.cycle import MANIFEST_MANAGER, ManifestManager
from headway.store import executions, leases, outcomes, work_queue
from headway.store.servers import ServerProcess
from headway.store.tables import work_queue as queue_table
from tests.builders import OWNER, START, Scene, names, reasons

FAILED = ExecutionState.FAILED


def declare(scene: Scene, external_id: str = "load-users", **options: Any) -> None:
    scene.app.schedule("work", external_id, None, every(hours=1), **options)
    scene.apply()


def start(scene: Scene) -> None:
    """Take what is due as far as a worker that then says nothing more."""
    scene.manage()
    scene.dispatch()
    scene.claim()


def fail_once(scene: Scene) -> None:
    """One more failed run of load-users, however long its backoff."""
    scene.failing.add("load-users")
    scene.manage()
    scene.clock.advance(hours=2)
    scene.dispatch()
    assert scene.run().ended == {FAILED: 1}


def test_the_seven_steps_in_the_seeds_order() -> None:
    assert [step.name for step in MANIFEST_MANAGER.steps] == [
        "load_manifests",
        "cancel_timed_out_jobs",
        "reap_stale_pending",
        "reap_stale_in_progress",
        "reap_failed_jobs",
        "determine_jobs_to_queue",
        "create_work_queue_entries",
    ]


# CancelTimedOutJobs


def test_a_run_beyond_the_default_timeout_is_flagged_once_and_told_to_this_server(
    scene: Scene,
) -> None:
    declare(scene)
    start(scene)
    told: list[int] = []
    manager = ManifestManager(
        scene.store, scene.app.settings, scene.app.observer, cancel_here=told.extend
    )
    scene.clock.advance(minutes=20)
    assert manager.run_once().cancelled == 0, "strictly longer than the timeout"

    scene.clock.advance(seconds=1)
    assert [manager.run_once().cancelled for _ in range(2)] == [1, 0]

    [running] = scene.history.executions.all()
    assert running.cancel_requested and running.state is ExecutionState.IN_PROGRESS
    assert told == [running.id]
    assert scene.history.dead_letters.awaiting() == []


def test_a_manifests_own_timeout_wins(scene: Scene) -> None:
    declare(scene, "short", timeout=timedelta(seconds=10))
    declare(scene, "long", timeout=timedelta(hours=3))
    start(scene)
    scene.clock.advance(minutes=30)

    assert scene.manage().cancelled == 1
    assert [one.cancel_requested for one in scene.history.executions.all("short")] == [True]
    assert [one.cancel_requested for one in scene.history.executions.all("long")] == [False]


def test_timeouts_are_watched_although_the_clock_was_set_back(scene: Scene) -> None:
    declare(scene)
    manager = ManifestManager(scene.store, scene.app.settings, scene.app.observer)
    manager.run_once()
    scene.clock.advance(hours=-2)
    start(scene)
    scene.clock.advance(minutes=21)

    assert manager.run_once().cancelled == 1


def test_waiting_in_the_queue_never_counts_against_the_timeout(scene: Scene) -> None:
    declare(scene)
    scene.manage()
    scene.clock.advance(minutes=19)
    scene.dispatch()
    scene.clock.advance(minutes=19)
    scene.claim()
    scene.clock.advance(minutes=19)

    assert scene.manage().cancelled == 0


# ReapStalePending, ReapStaleInProgress


def test_what_no_worker_picks_up_is_failed_by_the_stale_pending_reaper(scene: Scene) -> None:
    declare(scene)
    scene.manage()
    scene.dispatch()
    scene.clock.advance(minutes=20)
    assert scene.manage().reaped_pending == 0

    scene.clock.advance(seconds=1)
    assert scene.manage().reaped_pending == 1

    [reaped] = scene.ended(FAILED)
    assert reaped.failure is not None
    assert reaped.failure.type == FailureCode.STALE_PENDING
    assert reaped.failure.step == "ReapStalePending"
    assert "stale_pending_timeout" in reaped.failure.message
    assert reaped.finished_at == scene.clock.now and reaped.started_at is None


def test_a_run_that_never_ends_is_failed_by_the_stale_in_progress_reaper(scene: Scene) -> None:
    declare(scene)
    start(scene)
    scene.clock.advance(minutes=60)
    assert scene.manage().reaped_in_progress == 0

    scene.clock.advance(seconds=1)
    assert scene.manage().reaped_in_progress == 1

    [reaped] = scene.ended(FAILED)
    assert reaped.failure is not None
    assert reaped.failure.type == FailureCode.STALE_IN_PROGRESS
    assert reaped.failure.step == "ReapStaleInProgress"
    assert "stale_in_progress_timeout" in reaped.failure.message


def test_a_long_timeout_of_its_own_is_never_cut_short_by_the_stale_reaper(scene: Scene) -> None:
    declare(scene, timeout=timedelta(hours=3))
    start(scene)
    scene.clock.advance(hours=3)
    assert scene.manage().reaped_in_progress == 0

    scene.clock.advance(minutes=2)
    assert scene.manage().reaped_in_progress == 1


def test_runs_without_a_manifest_are_reaped_too(scene: Scene) -> None:
    scene.pending("work")
    scene.claim()
    scene.pending("work")
    scene.clock.advance(hours=2)

    result = scene.manage()

    assert (result.reaped_pending, result.reaped_in_progress) == (1, 1)
    assert len(scene.ended(FAILED)) == 2


def serve(scene: Scene, workflow: str = "work") -> None:
    """A worker says that it lives and knows a workflow."""
    process = ServerProcess(OWNER, "host", 1, ["worker"], [workflow], slots=1)
    with scene.store.writing() as tx:
        if not leases.renew(tx, OWNER, lease := timedelta(seconds=90)):
            leases.register(tx, process, lease)


def finish_one(scene: Scene) -> None:
    """The one slow worker ends what it runs and takes the next."""
    with scene.store.writing() as tx:
        owned = [run.execution_id for run in executions.owned_by_any(tx, [OWNER])]
        outcomes.finish(tx, OWNER, dict.fromkeys(owned, Outcome(ExecutionState.COMPLETED)))
    scene.claim(limit=1)


def test_5000_pending_behind_one_slow_worker_are_not_stale_until_it_is_dead(scene: Scene) -> None:
    ids = scene.enqueue(*[NewEntry("work", Source.AD_HOC, "null")] * 5000)
    with scene.store.writing() as tx:
        work_queue.dispatch(tx, ids)
    for _ in range(30):
        serve(scene)
        finish_one(scene)
        scene.clock.advance(minutes=1)
        assert scene.manage().reaped_pending == 0

    scene.clock.advance(minutes=20)
    assert scene.manage().reaped_pending == 5000 - 30


def test_a_worker_that_lives_but_starts_nothing_does_not_keep_what_waits(scene: Scene) -> None:
    scene.pending("work")
    scene.clock.advance(minutes=21)
    serve(scene)
    assert scene.manage().reaped_pending == 1


def test_workers_that_do_not_know_a_workflow_do_not_keep_what_waits_for_it(scene: Scene) -> None:
    scene.pending("unheard-of")
    scene.clock.advance(minutes=21)
    scene.pending("work")
    serve(scene)
    scene.claim()
    assert [one.workflow for one in scene.history.executions.all()] == ["unheard-of", "work"]
    assert scene.manage().reaped_pending == 1
    assert [one.workflow for one in scene.ended(FAILED)] == ["unheard-of"]


def test_stale_pending_dead_letters_in_the_same_cycle(scene: Scene) -> None:
    """W2: with max_retries=1, and not because nought failures are enough."""
    declare(scene, max_retries=1)
    scene.manage()
    scene.dispatch()
    scene.clock.advance(minutes=21)

    result = scene.manage()

    assert (result.reaped_pending, result.dead_lettered, result.queued) == (1, 1, 0)
    assert reasons(result) == {"load-users": "dead-lettered in this cycle"}
    [letter] = scene.history.dead_letters.awaiting()
    assert (letter.failures, letter.dead_lettered_at) == (1, scene.clock.now)


def test_stale_in_progress_dead_letters_in_the_same_cycle(scene: Scene) -> None:
    declare(scene, max_retries=1)
    start(scene)
    scene.clock.advance(minutes=61)

    result = scene.manage()

    assert (result.reaped_in_progress, result.dead_lettered, result.queued) == (1, 1, 0)


def test_a_reaped_run_below_max_retries_is_queued_again_in_the_same_cycle(scene: Scene) -> None:
    declare(scene, max_retries=2)
    start(scene)
    scene.clock.advance(minutes=61)

    result = scene.manage()

    assert (result.reaped_in_progress, result.dead_lettered, result.queued) == (1, 0, 1)
    assert names(scene.history.queue.all()) == ["load-users"]


# ReapFailedJobs


def test_three_failures_in_a_row_dead_letter_by_default(scene: Scene) -> None:
    declare(scene)
    for _ in range(3):
        fail_once(scene)

    result = scene.manage()

    assert (result.dead_lettered, result.queued) == (1, 0)
    [letter] = scene.history.dead_letters.awaiting()
    assert letter.failures == 3
    assert letter.reason == "failed 3 times in a row (max_attempts 3)"
    assert [event.fields for event in scene.events.named("manifest.dead_lettered")] == [
        {"external_id": "load-users"}
    ]
    assert [one.attempt for one in scene.ended(FAILED)] == [1, 2, 3]


def test_failures_are_counted_since_the_last_success(scene: Scene) -> None:
    """W4: one failure a month never adds up."""
    declare(scene)
    for _ in range(4):
        fail_once(scene)
        fail_once(scene)
        scene.failing.clear()
        scene.manage()
        scene.clock.advance(hours=2)
        scene.dispatch()
        assert scene.run().ended == {ExecutionState.COMPLETED: 1}
        scene.clock.advance(hours=2)

    assert scene.history.dead_letters.awaiting() == []
    assert {one.attempt for one in scene.ended(ExecutionState.COMPLETED)} == {3}


def test_max_retries_0_never_dead_letters_what_did_not_fail(scene: Scene) -> None:
    """W5: nought failures are not too many."""
    declare(scene, max_retries=0)

    assert (scene.manage().dead_lettered, len(scene.history.queue.all())) == (0, 1)
    scene.dispatch()
    scene.run()
    assert scene.history.dead_letters.awaiting() == []

    scene.clock.advance(hours=1)
    fail_once(scene)
    assert scene.manage().dead_lettered == 1, "but the first failure is one too many"


def test_cancelled_runs_are_no_failures_and_are_not_repeated(scene: Scene) -> None:
    declare(scene, max_retries=1)
    start(scene)
    with scene.store.writing() as tx:
        [running] = [run.execution_id for run in executions.owned_by_any(tx, [OWNER])]
        outcomes.finish(tx, OWNER, {running: Outcome(ExecutionState.CANCELLED)})

    result = scene.manage()

    assert (result.dead_lettered, result.queued) == (0, 0)
    assert reasons(result)["load-users"].startswith("not due before"), "its occurrence is settled"


# DetermineJobsToQueue, CreateWorkQueueEntries


def test_a_failed_run_is_queued_again_after_5_then_10_minutes(scene: Scene) -> None:
    declare(scene, max_retries=9)
    waits = []
    scene.failing.add("load-users")
    scene.cycle()
    for _ in range(6):
        result = scene.manage()
        [entry] = scene.history.queue.all()
        assert entry.scheduled_at is not None
        waits.append((entry.scheduled_at - scene.clock.now) / timedelta(minutes=1))
        assert reasons(result)["load-users"].startswith(f"retry {len(waits)} after")
        assert scene.dispatch().dispatched == (), "held back until then"
        scene.clock.now = entry.scheduled_at
        scene.dispatch()
        scene.run()

    assert waits == [5, 10, 20, 40, 60, 60]


def test_an_entry_carries_what_the_manifest_says(scene: Scene) -> None:
    def load(table: str) -> None: ...

    scene.app.workflow(load)
    group = Group("users", priority=7)
    scene.app.schedule(load, "load-users", "users", every(hours=1), group=group, priority=30)
    scene.apply()
    scene.manage()

    [entry] = scene.history.queue.all()
    assert (entry.workflow, entry.input, entry.group_name) == ("load", '"users"', "users")
    assert (entry.source, entry.priority) == ("schedule", 7), "the group's priority, not its own"
    assert (entry.scheduled_at, entry.scheduled_for, entry.created_at) == (None, START, START)


def test_max_active_jobs_is_not_enforced_by_the_manager(scene: Scene) -> None:
    scene.configure(max_active_jobs=1)
    group = Group("users", max_active_jobs=1)
    for number in range(5):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1), group=group)
    scene.apply()

    assert scene.manage().queued == 5


def curse(scene: Scene, external_id: str) -> None:
    """The database itself refuses any entry of this manifest."""
    manifest_id, _ = scene.ids_of(external_id)
    with scene.store.writing() as tx:
        if tx.on_postgresql:
            tx.connection.execute(
                text(
                    f"ALTER TABLE {queue_table.name} "
                    f"ADD CONSTRAINT cursed CHECK (manifest_id <> {manifest_id})"
                )
            )
        else:
            tx.connection.exec_driver_sql(
                f"CREATE TRIGGER cursed BEFORE INSERT ON {queue_table.name} "
                f"WHEN NEW.manifest_id = {manifest_id} "
                "BEGIN SELECT RAISE(ABORT, 'cursed'); END"
            )


def test_one_bad_entry_never_costs_the_others(scene: Scene) -> None:
    for number in range(10):
        declare(scene, f"load-{number}")
    curse(scene, "load-3")

    assert scene.manage().queued == 9

    assert "load-3" not in names(scene.history.queue.all())
    [told] = scene.events.named("manager.cycle")
    assert (told.fields["queued"], told.fields["refused"]) == (9, 1)
    [refused] = scene.events.named("manifest.refused")
    assert refused.fields["external_id"] == "load-3" and "cursed" in refused.fields["error"]
    assert scene.manifest("load-3").wake_at == START + timedelta(minutes=1), "it is tried again"


def test_every_entry_refused_costs_none_of_the_cycles_other_work(scene: Scene) -> None:
    declare(scene, "load-0")
    declare(scene, "load-1")
    start(scene)
    curse(scene, "load-0")
    scene.clock.advance(hours=3)

    result = scene.manage()

    assert (result.reaped_in_progress, result.queued) == (2, 1)


# What a cycle tells


def test_each_cycle_tells_its_counts_its_reasons_and_how_long_each_step_took(scene: Scene) -> None:
    declare(scene)
    declare(scene, "off", enabled=False)

    scene.manage()

    [told] = scene.events.named("manager.cycle", candidates=2, queued=1, dead_lettered=0)
    assert told.fields["reasons"] == {"the manifest is disabled": 1}
    assert list(told.fields["seconds"]) == [step.name for step in MANIFEST_MANAGER.steps]
    assert all(seconds > 0 for seconds in told.fields["seconds"].values())


def test_what_a_reaper_has_failed_is_told_and_tried_again_by_the_settings(scene: Scene) -> None:
    """A run that nobody picks up, and one that never ends."""
    scene.configure(default_retry_delay="3h", max_retry_delay="9h")
    running = scene.pending("work", max_attempts=2)
    scene.claim()
    waiting = scene.pending("work", max_attempts=2)
    scene.clock.advance(hours=2)

    result = scene.manage()

    assert (result.reaped_pending, result.reaped_in_progress) == (1, 1)
    queued = scene.history.queue.all()
    assert [one.scheduled_at for one in queued] == [scene.clock.now + timedelta(hours=3)] * 2
    told = [one.fields for one in scene.events.named("execution.failed")]
    assert told == [scene.execution(key).told() for key in (waiting, running)]
    [cycle] = scene.events.named("manager.cycle")
    del cycle.fields["seconds"]
    assert cycle.fields == {
        "candidates": 0,
        "queued": 0,
        "cancelled": 1,
        "reaped_pending": 1,
        "reaped_in_progress": 1,
        "dead_lettered": 0,
        "refused": 0,
        "reasons": {},
    }


def test_the_last_hundred_cycles_can_be_read(scene: Scene) -> None:
    declare(scene)
    for _ in range(102):
        scene.manage()

    recent = scene.app.observer.recent("manager.cycle")

    assert len(recent) == 100
    assert recent[-1] is scene.events.named("manager.cycle")[-1]


# Backoff


def test_a_failed_trigger_does_not_put_off_the_next_scheduled_run(scene: Scene) -> None:
    declare(scene)
    scene.cycle()
    scene.manage()
    scene.clock.advance(minutes=1)
    scene.failing = {"load-users"}
    scene.trigger("load-users")
    scene.dispatch()
    scene.run()

    scene.clock.advance(minutes=59)
    assert "due since" in reasons(scene.manage())["load-users"]
    [entry] = scene.history.queue.all()
    assert entry.scheduled_at is None


def test_the_wait_before_a_retry_counts_from_the_failure(scene: Scene) -> None:
    """Not from when a manager that was away looks at it."""
    declare(scene)
    fail_once(scene)
    failed_at = scene.clock.now

    scene.clock.advance(minutes=3)
    scene.manage()

    [entry] = scene.history.queue.all()
    assert entry.scheduled_at == failed_at + timedelta(minutes=5)


# Two passes


def test_what_runs_by_time_is_decided_before_dependents_and_dormant_ones_in_neither_pass(
    scene: Scene,
) -> None:
    chain = scene.app.schedule("work", "extract", None, every(hours=1))
    chain.include("work", "dormant", dormant=True).include("work", "load")
    scene.app.schedule("work", "other", None, every(hours=1))
    scene.apply()
    scene.cycle()
    scene.wake("dormant", "load", "other", "extract")

    decisions = scene.manage().decisions

    assert [one.view.kind for one in decisions] == ["interval"] * 2 + [
        "dependent",
        "dormant_dependent",
    ]
    queued = [one.view.external_id for one in decisions if one.verdict == "queue"]
    assert queued == ["load"]
