"""A pool with a lease: it claims while that lives, and finds out what it has lost."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from queue import Queue
from typing import Self

import pytest
from pydantic import BaseModel, model_validator
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from headway import Run
from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.domain.lease_time import LeaseTime, steady
from headway.runner import pool as pool_module
from headway.runner.cancellation import StopReason
from headway.runner.claims import Claims
from headway.runner.recording import Recording
from headway.runner.suspicion import Suspicion
from headway.store import executions, leases, outcomes
from headway.store.servers import ServerProcess
from headway.store.tables import execution
from headway.store.transaction import Transaction
from tests.builders import OWNER, PATIENCE, Scene, eventually
from tests.runner import isolated_jobs
from tests.runner.conftest import Gate, StartPool, starting_pools
from tests.runner.isolated_jobs import Place

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


def test_what_was_handed_back_wakes_manager_and_dispatcher(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would wait for the next poll although its slot is free."""
    monkeypatch.setattr(pool_module, "LOOK_PAUSE", 0.05)
    told: Queue[bool] = Queue()
    register(scene)
    scene.pending("work")
    scene.claim()

    with starting_pools(scene, leased=True, on_finished=told.put) as start:
        start()
        of_manifests = told.get(timeout=PATIENCE)

    assert of_manifests, "the manager has to know as well"


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


def test_what_was_claimed_under_a_former_name_is_handed_back_at_the_stop(
    scene: Scene, start_leased: StartPool, gate: Gate
) -> None:
    """A run that does not stop keeps the owner that claimed it."""

    @scene.app.workflow
    def load() -> None:
        gate.wait()

    register(scene)
    running = scene.pending("load")
    pool = start_leased()
    gate.arrived()
    scene.clock.advance(seconds=15)
    pool.change_owner("again")

    pool.request_stop(grace=0)
    pool.stop()

    assert scene.execution(running).state is HANDED_BACK
    assert scene.execution(running).owner == OWNER


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


def test_a_claim_that_takes_a_last_chance_takes_no_other_suspect(scene: Scene) -> None:
    """All of them come from one transaction: the second statement has to know of the first."""
    register(scene)
    last, suspect, sound = (scene.pending("work") for _ in range(3))
    with scene.store.writing() as tx:
        for key, crashes in ((last, 2), (suspect, 1)):
            chosen = execution.c.id == key
            tx.connection.execute(update(execution).where(chosen).values(crashes=crashes))
    suspicion = Suspicion(max_crashes=3)
    claims = Claims(scene.store, scene.app.registry, suspicion, leased=True)
    claims.look([OWNER])
    assert claims.last_chance_waits

    claimed = claims.claim(OWNER, 4, [])

    assert [one.id for one in claimed] == [last, sound]
    assert claims.claim(OWNER, 2, claimed) == []
    assert scene.execution(suspect).state is ExecutionState.PENDING


@pytest.mark.parametrize("way", ["sync", "async", "with its run"])
def test_a_run_whose_lease_is_over_before_it_begins_is_handed_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    begun: list[str] = []

    def in_thread() -> None:
        begun.append(way)

    async def in_loop() -> None:
        begun.append(way)

    async def with_its_run(run: Run) -> None:
        begun.append(way)

    bodies: dict[str, Callable[..., object]] = {
        "sync": in_thread,
        "async": in_loop,
        "with its run": with_its_run,
    }
    scene.app.workflow("load")(bodies[way])
    register(scene)
    lease = LeaseTime()
    lease.renewed(OWNER, until=steady() - 0.001)
    late = scene.pending("load")
    with starting_pools(scene, leased=True, lease_time=lease) as start:
        pool = start()
        scene.events.wait_for("execution.handed_back", execution_id=late)
        assert begun == []

        lease.renewed(OWNER, until=steady() + 60)
        in_time = scene.pending("load")
        pool.wake()
        scene.events.wait_for("execution.completed", execution_id=in_time)
    assert begun == [way]


def test_the_body_of_an_isolated_run_does_not_begin_when_the_lease_is_over(
    scene: Scene, tmp_path: Path
) -> None:
    place = Place(folder=str(tmp_path))
    scene.app.workflow("load", steps=(isolated_jobs.note_pid,), isolated=True)
    register(scene)
    lease = LeaseTime()
    lease.renewed(OWNER, until=steady() - 0.001)
    late = scene.pending("load", place.model_dump_json())
    with starting_pools(scene, leased=True, lease_time=lease) as start:
        pool = start()
        scene.events.wait_for("execution.handed_back", execution_id=late)
        assert not (tmp_path / "pid").exists()

        lease.renewed(OWNER, until=steady() + 60)
        in_time = scene.pending("load", place.model_dump_json())
        pool.wake()
        scene.events.wait_for("execution.completed", execution_id=in_time)
    assert (tmp_path / "pid").exists()


def test_a_run_that_was_claimed_in_an_older_name_does_not_begin(scene: Scene) -> None:
    begun: list[int] = []

    @scene.app.workflow
    async def load() -> None:
        begun.append(1)

    register(scene)
    lease = LeaseTime()
    lease.renewed("again", until=steady() + 60)
    late = scene.pending("load")
    with starting_pools(scene, leased=True, lease_time=lease) as start:
        start()
        scene.events.wait_for("execution.handed_back", execution_id=late)
    assert begun == []


def set_crashes(scene: Scene, execution_id: int, crashes: int) -> None:
    with scene.store.writing() as tx:
        chosen = execution.c.id == execution_id
        tx.connection.execute(update(execution).where(chosen).values(crashes=crashes))


def sweep(scene: Scene) -> dict[int, Execution]:
    """End the runs of all servers, none of which has a row."""
    with scene.store.writing() as tx:
        return {one.id: one for one in outcomes.end_orphans(tx, 3)[0]}


@pytest.mark.parametrize("crashes", [1, 2])
def test_a_run_that_had_not_begun_is_not_charged_with_the_loss_of_its_worker(
    scene: Scene, crashes: int
) -> None:
    waiting = scene.pending("work")
    set_crashes(scene, waiting, crashes)
    scene.claim()

    lost = sweep(scene)[waiting]

    assert lost.state is HANDED_BACK
    [entry] = scene.history.queue.all()
    scene.dispatch()
    [again] = scene.claim()
    assert (again.entry_id, again.crashes) == (entry.id, crashes)


def test_the_first_loss_is_charged_without_knowing(scene: Scene) -> None:
    claimed = scene.pending("work")
    scene.claim()

    assert sweep(scene)[claimed].lost
    scene.dispatch()
    assert [one.crashes for one in scene.claim()] == [1]


@pytest.mark.parametrize("isolated", [False, True], ids=["in the worker", "isolated"])
def test_a_run_that_lost_a_worker_before_is_on_record_when_its_input_is_read(
    scene: Scene, start_leased: StartPool, tmp_path: Path, isolated: bool
) -> None:
    """To read the input is the user's code already, and may take the worker along."""
    seen: list[str | None] = []

    class Watched(BaseModel):
        @model_validator(mode="after")
        def look(self) -> Self:
            seen.append(scene.execution(suspect).running_step)
            return self

    def load(watched: Watched) -> None:
        seen.append("body")

    steps: tuple[Callable[..., object], ...] = (
        (isolated_jobs.stay_half_way,) if isolated else (load,)
    )
    scene.app.workflow("load", steps=steps, isolated=isolated)
    register(scene)
    place = Place(folder=str(tmp_path)).model_dump_json()
    suspect = scene.pending("load", place if isolated else "{}")
    set_crashes(scene, suspect, 1)
    start_leased()

    if isolated:
        eventually(lambda: scene.execution(suspect).progress is not None)
        assert scene.execution(suspect).running_step == "stay_half_way"
        (tmp_path / "released").touch()
    scene.events.wait_for("execution.completed", execution_id=suspect)
    assert isolated or seen == ["load", "body"]


def test_a_run_behind_the_one_that_kills_the_worker_is_charged_once_at_most(
    scene: Scene, start_leased: StartPool, gate: Gate
) -> None:
    """The first keeps the event loop, so the other, claimed with it, never begins."""

    @scene.app.workflow
    async def hold() -> None:
        gate.wait()

    register(scene)
    holding, behind = scene.pending("hold"), scene.pending("hold")
    for key in (holding, behind):
        set_crashes(scene, key, 1)
    start_leased()
    gate.arrived()
    with scene.store.writing() as tx:
        leases.leave(tx, OWNER)

    lost = sweep(scene)
    gate.open()

    states = sorted((one.lost, one.state) for one in lost.values())
    assert states == [(False, HANDED_BACK), (True, ExecutionState.FAILED)]


def test_a_suspect_that_is_not_ours_any_more_does_not_begin(
    scene: Scene, start_leased: StartPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    @scene.app.workflow
    async def load() -> None:
        begun.append(1)

    monkeypatch.setattr(executions, "note_step", lambda *arguments: None)
    register(scene)
    suspect = scene.pending("load")
    set_crashes(scene, suspect, 1)
    start_leased()

    scene.events.wait_for("execution.handed_back", execution_id=suspect)
    assert begun == []
