"""A pool with a lease: it claims while that lives, and finds out what it has lost."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from headway import Run
from headway.domain.execution import ExecutionState, Outcome
from headway.runner import pool as pool_module
from headway.runner.cancellation import StopReason
from headway.runner.recording import Recording
from headway.store import executions, leases, outcomes
from headway.store.servers import ServerProcess
from headway.store.tables import execution
from headway.store.transaction import Transaction
from tests.builders import OWNER, Scene, eventually
from tests.runner.conftest import Gate, StartPool, starting_pools

LEASE = timedelta(seconds=15)
COMPLETED, HANDED_BACK = ExecutionState.COMPLETED, ExecutionState.HANDED_BACK


def register(scene: Scene, server_id: str = OWNER) -> None:
    with scene.store.writing() as tx:
        leases.register(tx, ServerProcess(server_id, "host", 1, ["worker"], ["work"], 4), LEASE)


@pytest.fixture
def start_leased(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartPool]:
    """Starts pools that look often and poll never."""
    monkeypatch.setattr(pool_module, "LOOK_PAUSE", 0.05)
    with starting_pools(scene, leased=True) as start:
        yield start


def wait_for_ever(scene: Scene, gate: Gate) -> None:
    @scene.app.workflow
    async def load() -> None:
        gate.note_arrival()
        await asyncio.Event().wait()


def take_away(scene: Scene, execution_id: int) -> None:
    """Another server has ended it."""
    with scene.store.writing() as tx:
        assert outcomes.fail_stale_in_progress(tx, [execution_id])


@pytest.mark.parametrize("expired", [False, True], ids=["no row", "an expired row"])
def test_without_a_living_row_nothing_is_claimed(
    scene: Scene, start_leased: StartPool, expired: bool
) -> None:
    if expired:
        register(scene)
        scene.clock.advance(seconds=15)
    pending = scene.pending("work")
    pool = start_leased()
    pool.wake()
    later = scene.pending("work")
    pool.change_owner("again")
    register(scene, "again")
    pool.wake()

    scene.events.wait_for("execution.completed", count=2)
    assert {scene.execution(key).owner for key in (pending, later)} == {"again"}


def test_a_cancellation_reaches_a_run_of_one_step_on_any_server(
    scene: Scene, start_leased: StartPool, gate: Gate
) -> None:
    wait_for_ever(scene, gate)
    register(scene)
    running = scene.pending("load")
    start_leased()
    gate.arrived()
    with scene.store.writing() as tx:
        executions.request_cancel(tx, [running], "not today")

    scene.events.wait_for("execution.cancelled", execution_id=running)
    assert scene.execution(running).state is ExecutionState.CANCELLED


def test_a_run_that_was_taken_away_is_stopped(
    scene: Scene, start_leased: StartPool, gate: Gate
) -> None:
    wait_for_ever(scene, gate)
    register(scene)
    running = scene.pending("load")
    start_leased()
    gate.arrived()
    take_away(scene, running)

    scene.events.wait_for("execution.refused", execution_id=running)
    assert scene.execution(running).state is ExecutionState.FAILED, "as the other one left it"


@pytest.mark.story(35)
def test_the_result_of_a_run_that_was_taken_away_is_refused(
    scene: Scene, start_leased: StartPool, gate: Gate
) -> None:
    @scene.app.workflow
    def load(run: Run) -> None:
        gate.note_arrival()
        while not run.cancelled:
            threading.Event().wait(0.01)

    register(scene)
    running = scene.pending("load")
    start_leased()
    gate.arrived()
    take_away(scene, running)

    scene.events.wait_for("execution.refused", execution_id=running)
    assert scene.events.named("execution.completed") == []


def test_a_claim_whose_answer_was_lost_is_handed_back(
    scene: Scene, start_leased: StartPool
) -> None:
    """Owned in the database, unknown here, in two looks."""
    register(scene)
    lost = scene.pending("work")
    scene.claim()
    start_leased()

    scene.events.wait_for("execution.handed_back", execution_id=lost)
    assert len(scene.history.queue.all()) == 1
    assert scene.execution(lost).attempt == 1


def test_whoever_lost_its_lease_stops_its_runs_and_goes_on_under_another_name(
    scene: Scene, start_leased: StartPool, gate: Gate
) -> None:
    wait_for_ever(scene, gate)
    register(scene)
    running = scene.pending("load")
    pool = start_leased()
    gate.arrived()
    assert pool.running() == ["load"]

    pool.change_owner("again")
    scene.events.wait_for("execution.handed_back", execution_id=running)
    assert scene.execution(running).owner == OWNER
    register(scene, "again")
    scene.dispatch()
    pool.wake()
    gate.arrived()
    assert {one.owner for one in scene.history.executions.all()} == {OWNER, "again"}


def test_an_unreachable_database_stops_no_run(
    scene: Scene, start_leased: StartPool, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    @scene.app.workflow
    def load() -> None:
        gate.wait()

    def break_down(tx: Transaction, *arguments: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    register(scene)
    running = scene.pending("load")
    start_leased()
    gate.arrived()
    with monkeypatch.context() as broken:
        broken.setattr(executions, "owned_by_any", break_down)
        scene.events.wait_for("loop.failed", count=3, loop="worker")
    gate.open()

    scene.events.wait_for("execution.completed", execution_id=running)


def test_a_commit_whose_answer_was_lost_is_looked_up_and_told_once(scene: Scene) -> None:
    done = scene.pending("work")
    [one] = scene.claim()
    record = Recording(scene.store, OWNER, scene.app.observer)
    briefly = scene.store.briefly

    @contextmanager
    def lose_the_answer() -> Iterator[Transaction]:
        with briefly() as tx:
            yield tx
        raise OperationalError("COMMIT", {}, Exception("server closed the connection"))

    scene.store.briefly = lose_the_answer  # type: ignore[method-assign]
    with pytest.raises(OperationalError):
        record({done: Outcome(COMPLETED)})
    scene.store.briefly = briefly  # type: ignore[method-assign]
    assert scene.events.named("execution.completed") == []

    assert record({done: Outcome(COMPLETED)}) == {one.id}
    assert record({done: Outcome(COMPLETED)}) == set(), "nobody is in doubt any more"
    assert len(scene.events.named("execution.completed")) == 1


def test_a_run_on_its_last_chance_has_no_suspects_beside_it(
    scene: Scene, start_leased: StartPool, gate: Gate
) -> None:
    """They crashed together, and the next crash of one must not be the last of the others."""
    wait_for_ever(scene, gate)
    register(scene)
    suspects = [scene.pending("load") for _ in range(3)]
    crashes = dict(zip(suspects, (2, 2, 1), strict=True))
    with scene.store.writing() as tx:
        for key, count in crashes.items():
            chosen = execution.c.id == key
            tx.connection.execute(update(execution).where(chosen).values(crashes=count))
    clean = scene.pending("load")

    def running() -> list[int]:
        found = scene.history.executions.all(states=[ExecutionState.IN_PROGRESS])
        return sorted(one.id for one in found)

    pool = start_leased()
    gate.arrived(2)
    assert running() == [suspects[2], clean], "who crashed once may run beside anybody but those"
    for expected in suspects[:2]:
        for key in running():
            if key != clean:
                pool.cancellations.try_cancel(key, StopReason.REQUESTED)
        gate.arrived()
        eventually(lambda expected=expected: running() == [expected, clean])  # type: ignore[misc]
