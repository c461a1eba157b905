"""The worker pool: as many at once as it has slots, and a stop that loses nothing."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy.exc import OperationalError

from headway import Run, every
from headway.domain.execution import ExecutionState
from headway.runner.pool import WorkerPool
from headway.store import executions, outcomes
from headway.store.transaction import Transaction
from tests.builders import OWNER, START, Scene, eventually, names
from tests.runner.conftest import Gate, StartPool, starting_pools

COMPLETED = ExecutionState.COMPLETED
HANDED_BACK = ExecutionState.HANDED_BACK


def stopping(pool: WorkerPool) -> threading.Thread:
    """A thread in which the pool is being stopped."""
    thread = threading.Thread(target=pool.stop)
    thread.start()
    return thread


def declare(scene: Scene, workflow: Callable[..., object], count: int = 1) -> None:
    for number in range(count):
        scene.app.schedule(workflow, f"load-{number}", None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()


def test_at_most_worker_count_run_at_once(scene: Scene, start_pool: StartPool, gate: Gate) -> None:
    @scene.app.workflow
    def load() -> None:
        gate.wait()

    declare(scene, load, 7)
    start_pool(worker_count=3)
    gate.arrived(3)

    running = scene.history.executions.all(states=[ExecutionState.IN_PROGRESS])
    assert len(running) == 3, "what is not claimed stays pending, for others"
    gate.open()
    scene.events.wait_for("execution.completed", count=7)
    assert len(scene.ended(COMPLETED)) == 7


def test_a_run_whose_end_is_refused_frees_its_slot(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    def load() -> None:
        gate.wait()

    declare(scene, load, 2)
    pool = start_pool(worker_count=1)
    gate.arrived()
    [given_up] = scene.history.executions.all(states=[ExecutionState.IN_PROGRESS])
    with scene.store.writing() as tx:
        outcomes.fail_stale_in_progress(tx, [given_up.id])
    gate.open()

    scene.events.wait_for("execution.refused", execution_id=given_up.id)
    scene.events.wait_for("execution.completed")
    eventually(lambda: pool.free == 1)
    assert pool.running() == []


def test_async_steps_run_at_the_same_time_in_one_loop(scene: Scene, start_pool: StartPool) -> None:
    together = asyncio.Barrier(4)
    loops = set()

    @scene.app.workflow
    async def meet() -> None:
        loops.add(asyncio.get_running_loop())
        await together.wait()

    declare(scene, meet, 4)
    start_pool(worker_count=4)

    scene.events.wait_for("execution.completed", count=4)
    assert len(loops) == 1


def test_what_a_run_activates_is_told_before_the_run_ends(scene: Scene, gate: Gate) -> None:
    told = threading.Event()

    @scene.app.workflow
    def parent(run: Run) -> None:
        run.activate("child", None)
        gate.wait()

    chain = scene.app.schedule(parent, "parent", None, every(hours=1))
    chain.include("work", "child", None, dormant=True)
    scene.apply()
    scene.manage()
    scene.dispatch()
    with starting_pools(scene, on_finished=lambda of_manifests: told.set()) as start:
        start()
        gate.arrived()
        assert told.is_set(), "else the dispatcher finds it by polling"
        assert scene.ended(COMPLETED) == []
        gate.open()
        scene.events.wait_for("execution.completed")


def test_sync_steps_run_at_the_same_time_in_threads(scene: Scene, start_pool: StartPool) -> None:
    together = threading.Barrier(4)

    @scene.app.workflow
    def meet() -> None:
        together.wait(20)

    declare(scene, meet, 4)
    start_pool(worker_count=4)

    scene.events.wait_for("execution.completed", count=4)


def test_the_highest_priority_is_claimed_first_then_the_oldest(
    scene: Scene, start_pool: StartPool
) -> None:
    ran: list[int] = []

    @scene.app.workflow
    def note(run: Run) -> None:
        ran.append(run.execution_id)

    low, high, other = (scene.pending("note", priority=priority) for priority in (1, 9, 1))
    start_pool(worker_count=1)
    scene.events.wait_for("execution.completed", count=3)

    assert ran == [high, low, other]


def test_two_pools_never_run_the_same_execution(scene: Scene, start_pool: StartPool) -> None:
    ran: list[int] = []

    @scene.app.workflow
    def note(run: Run) -> None:
        ran.append(run.execution_id)

    pools = [start_pool(), start_pool()]
    wanted = [scene.pending("note") for _ in range(40)]
    for pool in pools:
        pool.wake()
    scene.events.wait_for("execution.completed", count=40)

    assert sorted(ran) == wanted


def test_a_pool_leaves_workflows_it_does_not_know(scene: Scene, start_pool: StartPool) -> None:
    unknown = scene.pending("elsewhere")
    scene.pending("work")
    start_pool()
    scene.events.wait_for("execution.completed")

    assert scene.execution(unknown).state is ExecutionState.PENDING


def test_a_database_error_while_claiming_is_survived(
    scene: Scene, start_pool: StartPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(tx: Transaction, *arguments: object) -> None:
        raise OperationalError("UPDATE", {}, Exception("gone"))

    with monkeypatch.context() as broken:
        broken.setattr(executions, "claim_pending", break_down)
        pool = start_pool()
        scene.events.wait_for("loop.failed", loop="worker")
    scene.pending("work")
    pool.wake()

    scene.events.wait_for("execution.completed")


def test_stop_waits_for_what_runs_and_claims_nothing_more(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    def load() -> None:
        gate.wait()

    declare(scene, load, 2)
    pool = start_pool(worker_count=1, shutdown_timeout=20)
    gate.arrived()
    thread = stopping(pool)
    assert thread.is_alive()
    gate.open()
    thread.join()

    states = [one.state for one in scene.history.executions.all()]
    assert states == [COMPLETED, ExecutionState.PENDING]


def test_after_the_grace_an_async_run_is_interrupted_and_handed_back_uncharged(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    async def load() -> None:
        gate.note_arrival()
        await asyncio.Event().wait()

    declare(scene, load)
    pool = start_pool(shutdown_timeout=0.05)
    gate.arrived()
    pool.stop()

    [handed_back] = scene.history.executions.all()
    assert (handed_back.state, handed_back.failure) == (HANDED_BACK, None)
    assert names(scene.history.queue.all()) == ["load-0"]
    scene.events.wait_for("execution.handed_back")

    scene.dispatch()
    [again] = scene.claim()
    assert again.attempt == 1 and again.id > handed_back.id
    assert again.entry_id == handed_back.entry_id


def test_after_the_grace_a_sync_run_that_does_not_listen_is_handed_back(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    def load() -> None:
        gate.wait()

    declare(scene, load)
    pool = start_pool(shutdown_timeout=0.0)
    gate.arrived()
    pool.stop()

    [handed_back] = scene.history.executions.all()
    assert handed_back.state is HANDED_BACK
    assert names(scene.history.queue.all()) == ["load-0"]
    assert asyncio.all_tasks(pool._loop) == set(), "nothing is left behind, half done"


def test_a_run_that_listens_is_handed_back_at_its_next_step(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    def first(run: Run) -> None:
        gate.note_arrival()
        while not run.cancelled:
            threading.Event().wait(0.01)

    def second() -> None:
        raise AssertionError("must not run")

    scene.app.workflow("two", steps=(first, second))
    execution_id = scene.pending("two")
    pool = start_pool(shutdown_timeout=0.0)
    gate.arrived()
    pool.stop()

    assert scene.execution(execution_id).state is HANDED_BACK


def test_a_second_request_shortens_the_grace(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    async def load() -> None:
        gate.note_arrival()
        await asyncio.Event().wait()

    declare(scene, load)
    pool = start_pool(shutdown_timeout=3600)
    gate.arrived()
    thread = stopping(pool)
    pool.request_stop(grace=0)
    thread.join(20)

    assert not thread.is_alive()
    assert scene.history.executions.all()[0].state is HANDED_BACK


def test_an_idle_pool_stops_at_once_and_one_never_started_too(
    scene: Scene, start_pool: StartPool
) -> None:
    start_pool().stop()
    never = WorkerPool(
        scene.store, scene.app.registry, scene.app.settings, scene.app.observer, OWNER
    )
    never.stop()
    never.wake()


def test_what_was_claimed_but_never_started_is_handed_back_too(
    scene: Scene, start_pool: StartPool
) -> None:
    """A claim whose reply was lost: owned in the database, unknown here."""
    lost = scene.pending("work")
    scene.claim()
    start_pool().stop()

    assert scene.execution(lost).state is HANDED_BACK
    assert len(scene.history.queue.all()) == 1


def test_who_is_told_of_ends_knows_whether_runs_of_manifests_were_among_them(
    scene: Scene,
) -> None:
    """Of others only the dispatcher wants to know."""
    told: list[bool] = []
    with starting_pools(scene, on_finished=told.append) as start:
        scene.pending("work")
        pool = start()
        eventually(lambda: told == [False])
        declare(scene, scene.app.workflow("load")(lambda: None))
        pool.wake()
        eventually(lambda: told == [False, True])


def test_a_pool_names_what_goes_on(scene: Scene, start_pool: StartPool, gate: Gate) -> None:
    scene.app.workflow("note")(gate.wait)
    scene.pending("note")
    declare(scene, scene.app.workflow("load")(lambda: gate.wait()))
    pool = start_pool()
    gate.arrived(2)
    assert pool.running() == ["load-0", "note"]


def test_what_has_no_retry_policy_of_its_own_is_tried_again_by_the_settings(
    scene: Scene, start_pool: StartPool
) -> None:
    scene.failing.add(None)
    scene.pending("work", max_attempts=2)
    start_pool(default_retry_delay="3h", max_retry_delay="9h")
    scene.events.wait_for("execution.failed")
    [entry] = scene.history.queue.all()
    assert entry.scheduled_at == START + timedelta(hours=3)


def test_a_note_that_is_too_long_is_cut(scene: Scene, start_pool: StartPool) -> None:
    @scene.app.workflow
    def load(run: Run) -> None:
        run.progress(0.5, "x" * 600)

    execution_id = scene.pending("load")
    scene.run()
    note = scene.execution(execution_id).progress_note
    assert note is not None and note.startswith("xxx") and len(note) <= 500
