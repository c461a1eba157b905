"""Slots that a pool keeps free for what the dispatcher of its process starts at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from headway.domain.execution import Execution, ExecutionState
from headway.domain.starting import Hands, Start
from headway.domain.work_queue import NewEntry, Source
from headway.runner.pool import WorkerPool
from headway.store import leases, work_queue
from headway.store.executions import Owned
from headway.store.servers import ServerProcess
from tests.builders import OWNER, PATIENCE, Scene, eventually
from tests.runner.conftest import Gate, StartPool


def started(scene: Scene, hands: Hands, workflow: str = "work") -> list[Execution]:
    """One entry, dispatched and started for these hands."""
    [entry] = scene.enqueue(NewEntry(workflow, Source.AD_HOC, "null"))
    with scene.store.writing() as tx:
        start = Start(hands.owner, (entry,), scene.app.registry.first_steps())
        return work_queue.dispatch_each(tx, [entry], start=start).started


def pool_of(scene: Scene, **options: Any) -> WorkerPool:
    """Four slots, and whatever *options* a pool has."""
    settings = scene.app.settings.model_copy(update={"worker_count": 4})
    return WorkerPool(
        scene.store, scene.app.registry, settings, scene.app.observer, OWNER, **options
    )


def reserved(pool: WorkerPool) -> Hands:
    """All slots of a pool that has looked for pending executions, and found none."""
    kept: list[Hands] = []

    def keep() -> bool:
        hands = pool.reserve()
        if hands is not None and hands.free < 4:
            pool.start_at_once(hands, ())
            return False
        kept.extend([hands] if hands else [])
        return bool(kept)

    eventually(keep)
    return kept[0]


def test_what_was_started_for_them_runs_and_its_slot_is_free_again(
    scene: Scene, start_pool: StartPool
) -> None:
    pool = start_pool()
    hands = reserved(pool)
    assert (hands.owner, hands.free) == (OWNER, 4)
    assert "work" in hands.workflows and pool.reserve() is None

    [one] = started(scene, hands)
    pool.start_at_once(hands, [one])

    scene.events.wait_for("execution.completed", execution_id=one.id)
    pool.start_at_once(reserved(pool), ())


def test_while_they_are_kept_nothing_is_claimed_and_afterwards_it_is(
    scene: Scene, start_pool: StartPool
) -> None:
    pool = start_pool()
    hands = reserved(pool)
    pending = scene.pending("work")
    pool.wake()
    assert scene.execution(pending).state is ExecutionState.PENDING

    pool.start_at_once(hands, ())

    scene.events.wait_for("execution.completed", execution_id=pending)


def test_who_asked_in_vain_is_told_when_a_slot_is_free(scene: Scene) -> None:
    """A dispatcher that found none looks again, whether a claim kept them or runs had them."""
    told: list[bool] = []
    pool = pool_of(scene, on_room=lambda: told.append(True))
    pool.start()
    try:
        hands = reserved(pool)
        told.clear()
        assert pool.free == 0
        pool.start_at_once(hands, ())
        eventually(lambda: bool(told))
        eventually(lambda: pool.free == 4)  # a look for what is pending keeps them for a moment

        told.clear()
        hands = reserved(pool)
        pool.start_at_once(hands, started(scene, hands))
        eventually(lambda: bool(told))
        eventually(lambda: pool.free == 4)
    finally:
        pool.stop()
    assert pool.free == 0, "who stops takes nothing more"


def test_a_pool_that_stops_waits_for_what_is_on_its_way(
    scene: Scene, start_pool: StartPool, gate: Gate
) -> None:
    scene.app.workflow("waiting")(lambda: gate.wait())
    pool = start_pool()
    hands = reserved(pool)
    [one] = started(scene, hands, "waiting")
    ask, asked = pool._claims.look, threading.Event()

    def noted(owners: Collection[str]) -> list[Owned]:
        asked.set()
        return ask(owners)

    pool._claims.look = noted  # type: ignore[method-assign]
    stopping = threading.Thread(target=pool.stop)
    stopping.start()
    eventually(lambda: pool._stopping)
    assert pool.reserve() is None, "who stops takes nothing more"
    assert not asked.wait(1.0), "it is not over until the answer has come"

    pool.start_at_once(hands, [one])
    gate.arrived()
    gate.open()
    stopping.join(PATIENCE)

    assert not stopping.is_alive()
    assert scene.execution(one.id).state is ExecutionState.COMPLETED


def test_what_was_started_for_an_owner_that_is_gone_is_left_to_the_sweep(
    scene: Scene, start_pool: StartPool
) -> None:
    pool = start_pool()
    hands = reserved(pool)
    [one] = started(scene, hands)
    pool.change_owner("again")
    eventually(lambda: pool.owner == "again")

    pool.start_at_once(hands, [one])

    pool.start_at_once(reserved(pool), ())
    assert scene.execution(one.id).state is ExecutionState.IN_PROGRESS
    assert scene.events.named("execution.started") == []


def test_a_look_does_not_take_what_is_on_its_way_for_lost(
    scene: Scene,
) -> None:
    """It is owned, and nobody here knows it yet: only when nothing is on its way is it lost."""
    with scene.store.writing() as tx:
        process = ServerProcess(OWNER, "host", 1, ["worker"], ["work"], 4)
        leases.register(tx, process, timedelta(hours=1))
    pool = pool_of(scene, leased=True)
    pool.start()
    try:
        hands = reserved(pool)
        [one] = started(scene, hands)
        for _ in range(3):
            look(pool)
        assert scene.execution(one.id).state is ExecutionState.IN_PROGRESS

        pool.start_at_once(hands, ())  # the answer to its commit was lost, say
        for _ in range(2):
            look(pool)
        assert scene.execution(one.id).state is ExecutionState.HANDED_BACK
    finally:
        pool.request_stop(grace=0)
        pool.stop()


def test_a_start_that_begins_during_a_look_is_not_taken_for_lost(scene: Scene) -> None:
    """Nothing was on its way when the look began, and the answer has what was started since."""
    with scene.store.writing() as tx:
        process = ServerProcess(OWNER, "host", 1, ["worker"], ["work"], 4)
        leases.register(tx, process, timedelta(hours=1))
    pool = pool_of(scene, leased=True)
    ask = pool._claims.look
    begun: list[tuple[Hands, Execution]] = []

    def start_and_ask(owners: Collection[str]) -> list[Owned]:
        if not begun:
            hands = reserved(pool)
            begun.append((hands, started(scene, hands)[0]))
        return ask(owners)

    pool._claims.look = start_and_ask  # type: ignore[method-assign]
    pool.start()
    try:
        eventually(lambda: not pool._slots.on_their_way)
        for _ in range(3):
            look(pool)
        [(hands, one)] = begun
        assert scene.execution(one.id).state is ExecutionState.IN_PROGRESS
        pool.start_at_once(hands, [one])
        scene.events.wait_for("execution.completed", execution_id=one.id)
    finally:
        pool.request_stop(grace=0)
        pool.stop()


def look(pool: Any) -> None:
    done = threading.Event()

    async def once() -> None:
        await pool._look()
        done.set()

    asyncio.run_coroutine_threadsafe(once(), pool._loop)
    assert done.wait(PATIENCE)
