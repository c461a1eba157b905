"""A run that ignores being asked to stop keeps its slot; half of them lost, the process is told."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from headway.domain.execution import ExecutionState
from headway.runner import pool as pool_module
from headway.runner.cancellation import StopReason
from headway.runner.pool import WorkerPool
from headway.store import executions
from tests.builders import PATIENCE, Scene
from tests.runner.conftest import Gate, StartPool, starting_pools
from tests.runner.test_ownership import register, take_away

HALF = "half of them are stuck"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def start(scene: Scene, told: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[StartPool]:
    """Starts pools that look often, poll never, and give nobody much time to stop."""
    monkeypatch.setattr(pool_module, "LOOK_PAUSE", 0.02)
    register(scene)
    options: Any = {"leased": True, "on_half_stuck": lambda: told.append(HALF)}
    with starting_pools(scene, **options) as start:
        yield lambda slots, **rest: start(worker_count=slots, cancel_grace=0.01, **rest)


def hanging(scene: Scene, gate: Gate, count: int) -> list[int]:
    """Runs in threads that listen to nobody until the gate is opened."""
    scene.app.workflow("hang")(gate.wait)
    return [scene.pending("hang") for _ in range(count)]


def get_stuck(scene: Scene, gate: Gate, pool: WorkerPool, ids: list[int]) -> None:
    pool.wake()
    gate.arrived(len(ids))
    pool.cancellations.cancel_all(ids, StopReason.TIMEOUT)
    scene.events.wait_for("execution.stuck", count=len(ids))


def test_a_stuck_run_keeps_its_slot_until_it_ends(
    scene: Scene, start: StartPool, gate: Gate, told: list[str]
) -> None:
    """Also when it has long been ended in the database, and only one of three is stuck."""
    arrived, leave = threading.Semaphore(0), threading.Event()

    @scene.app.workflow
    def quick() -> None:
        arrived.release()
        leave.wait(PATIENCE)

    pool = start(3)
    [stuck] = hanging(scene, gate, 1)
    get_stuck(scene, gate, pool, [stuck])
    take_away(scene, stuck)
    later = [scene.pending("quick") for _ in range(3)]
    pool.wake()
    assert all(arrived.acquire(timeout=PATIENCE) for _ in range(2))
    with scene.store.reading() as tx:
        assert executions.has_pending(tx, range(1)), "there is no slot for the third"
    gate.open()
    assert arrived.acquire(timeout=PATIENCE), "now there is one"
    leave.set()
    scene.events.wait_for("execution.completed", count=3, workflow="quick")

    [one] = scene.events.named("execution.stuck", execution_id=stuck)
    assert one.fields == {"execution_id": stuck, "external_id": None, "workflow": "hang"}
    assert {one.id for one in scene.ended(ExecutionState.COMPLETED)} == set(later)
    assert told == []


def test_half_of_the_slots_is_too_much_and_told_once(
    scene: Scene, start: StartPool, gate: Gate, told: list[str]
) -> None:
    pool = start(4)
    get_stuck(scene, gate, pool, hanging(scene, gate, 1))
    assert told == []
    more = [scene.pending("hang") for _ in range(2)]
    pool.wake()
    gate.arrived(2)
    pool.cancellations.cancel_all(more, StopReason.REQUESTED)
    scene.events.wait_for("execution.stuck", count=3)
    looked = threading.Event()
    pool._tell_loop(looked.set)
    assert looked.wait(PATIENCE)

    assert told == [HALF]


def test_a_pool_that_stops_waits_for_the_others_only(
    scene: Scene, start: StartPool, gate: Gate
) -> None:
    """Those get all the time they may have; what is stuck would have used it up."""
    others, release = Gate(), threading.Event()

    @scene.app.workflow
    def finishing() -> None:
        others.note_arrival()
        release.wait(PATIENCE)

    pool = start(4, shutdown_timeout=timedelta(hours=1))
    stuck = hanging(scene, gate, 2)
    get_stuck(scene, gate, pool, stuck)
    busy = scene.pending("finishing")
    pool.wake()
    others.arrived()
    stopping = threading.Thread(target=pool.stop)
    stopping.start()
    release.set()
    stopping.join(PATIENCE)

    assert not stopping.is_alive()
    assert scene.execution(busy).state is ExecutionState.COMPLETED
    failures = [scene.execution(key).failure for key in stuck]
    assert [one.type for one in failures if one] == ["JobTimeout"] * 2, "or it would run again"
