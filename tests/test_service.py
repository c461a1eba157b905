"""One process: which actors its roles start, how it presents itself, and what it tells."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete

from headway import every
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.history import History
from headway.runner import pool
from headway.runner.cancellation import StopReason
from headway.service import Service
from headway.store import objectives
from headway.store.engine import Store
from headway.store.tables import server
from headway.wakeups import EVERY_ROLE, Role
from tests.builders import PATIENCE, Scene, eventually
from tests.store.factories import rows_of

MANAGER, DISPATCHER, WORKER = Role
OFTEN = {"dispatcher_polling_interval": 0.05, "polling_interval": 0.05}
MANAGING = {"manager", "sweep", "tally", "retention", "azolla"}


@pytest.fixture
def scene(sqlite_url: str) -> Iterator[Scene]:
    with Scene(sqlite_url, virtual_time=False) as scene:
        yield scene


@contextmanager
def running(scene: Scene, *roles: Role, **settings: Any) -> Iterator[Service]:
    if settings:
        scene.configure(**settings)
    service = Service(scene.app, roles or EVERY_ROLE)
    service.start()
    try:
        yield service
    finally:
        service.request_stop(grace=0)
        service.stop()


def ad_hoc(scene: Scene, workflow: str = "work") -> None:
    scene.enqueue(NewEntry(workflow, Source.AD_HOC, "null"))


@pytest.mark.parametrize(
    ("roles", "settings", "loops"),
    [
        (EVERY_ROLE, {}, {*MANAGING, "dispatcher", "orphans", "pulse"}),
        ([MANAGER], {}, {*MANAGING, "pulse"}),
        ([DISPATCHER], {}, {"dispatcher", "orphans", "pulse"}),
        ([WORKER], {}, {"orphans", "pulse"}),
        (EVERY_ROLE, {"manager_enabled": False}, {"dispatcher", "orphans", "pulse"}),
        (EVERY_ROLE, {"dispatcher_enabled": False}, {*MANAGING, "orphans", "pulse"}),
    ],
)
def test_each_role_brings_its_actors(
    scene: Scene, roles: list[Role], settings: dict[str, Any], loops: set[str]
) -> None:
    scene.configure(**settings)
    service = Service(scene.app, roles)
    assert service._loops.keys() == loops
    service.stop()


def test_on_postgresql_a_process_listens(postgres_url: str) -> None:
    with Scene(postgres_url, virtual_time=False) as scene:
        service = Service(scene.app, [WORKER])
        assert service._loops.keys() == {"orphans", "listener", "pulse"}
        service.stop()


@pytest.mark.parametrize(
    ("roles", "settings", "duties", "slots"),
    [
        (EVERY_ROLE, {"worker_count": 3}, ["dispatcher", "manager", "worker"], 3),
        ([MANAGER, DISPATCHER], {"worker_count": 3}, ["dispatcher", "manager"], 0),
        (EVERY_ROLE, {"manager_enabled": False, "worker_count": 3}, ["dispatcher", "worker"], 3),
        (EVERY_ROLE, {"dispatcher_enabled": False, "worker_count": 3}, ["manager", "worker"], 3),
    ],
)
def test_a_process_presents_what_others_can_count_on(
    scene: Scene, roles: list[Role], settings: dict[str, Any], duties: list[str], slots: int
) -> None:
    scene.app.workflow("load")(lambda: None)
    with running(scene, *roles, **settings) as service:
        [row] = scene.history.servers.all()
        assert (row.id, sorted(row.roles), row.slots) == (service.owner, duties, slots)
        assert row.workflows == tuple(sorted(scene.app.registry.names()))
    assert rows_of(scene.store, server) == [], "it has left"


def test_a_process_tells_when_it_begins_and_when_it_has_stopped(scene: Scene) -> None:
    with running(scene, WORKER, DISPATCHER) as service:
        started = {"owner": service.owner, "roles": ["dispatcher", "worker"]}
        assert [one.fields for one in scene.events.named("service.started")] == [started]
    assert [one.fields for one in scene.events.named("service.stopped")] == [
        {"owner": service.owner}
    ]


@pytest.mark.parametrize(("role", "applied"), [(MANAGER, ["yearly"]), (DISPATCHER, [])])
def test_only_a_manager_applies_what_is_declared(
    scene: Scene, role: Role, applied: list[str]
) -> None:
    scene.app.schedule("work", "yearly", None, every(days=365))
    with running(scene, role):
        found = [one.external_id for one in scene.history.manifests.all()]
        with scene.store.reading() as tx:
            standing = objectives.own_azolla_id(tx)
    assert found == applied
    assert standing == ("tests" if applied else None)


@pytest.mark.parametrize(
    ("roles", "settings", "pause"),
    [
        (EVERY_ROLE, {}, 2.0),
        ([MANAGER], {"manager_polling_interval": 0.5}, 0.5),
        ([DISPATCHER], {"dispatcher_polling_interval": 0.5}, 0.5),
        ([WORKER], {"polling_interval": 0.5}, 0.5),
        ([WORKER], {"manager_polling_interval": 0.5, "dispatcher_polling_interval": 0.5}, 2.0),
        ([WORKER], {"server_lease": "6s"}, 1.0),
    ],
)
def test_the_pulse_is_as_quick_as_the_shortest_interval_of_its_roles(
    scene: Scene, roles: list[Role], settings: dict[str, Any], pause: float
) -> None:
    scene.configure(**settings)
    service = Service(scene.app, roles)
    assert service._loops["pulse"]._once() == pause
    service.stop()


def test_the_pulse_tells_what_there_is_to_do(scene: Scene) -> None:
    """Nobody polls and nobody announces anything here, so that it is the pulse that has it done."""
    with running(scene, DISPATCHER, WORKER, **OFTEN):
        scene.events.wait_for("service.pulse")
        ad_hoc(scene)
        scene.events.wait_for("service.pulse", dispatch=True)
        scene.events.wait_for("execution.completed")
        idle = scene.events.named("service.pulse")[0].fields
    names = {"manage", "dispatch", "claim", "orphans", "owned", "requests"}
    assert idle == dict.fromkeys(names, False)


def test_a_process_that_works_is_healthy_and_one_that_lost_its_lease_is_not(scene: Scene) -> None:
    with running(scene) as service:
        assert service.health().green
        service._keeper.renewed_at -= timedelta(hours=1)
        [reason] = service.health().reasons
        assert reason.startswith("the lease is over since")


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_process_that_has_lost_half_of_its_slots_says_that_it_is_worn_out(
    scene: Scene, let_go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "LOOK_PAUSE", 0.02)
    began = threading.Event()

    @scene.app.workflow
    def hang() -> None:
        began.set()
        let_go.wait(PATIENCE)

    ad_hoc(scene, "hang")
    with running(scene, worker_count=2, cancel_grace=0.01) as service:
        assert began.wait(PATIENCE)
        [one] = scene.history.executions.all()
        assert service._pool is not None
        service._pool.cancellations.try_cancel(one.id, StopReason.REQUESTED)
        [told] = scene.events.wait_for("service.worn_out")
        assert told.fields == {"owner": service.owner}
        let_go.set()


def wait_for_ever(scene: Scene) -> threading.Event:
    """A workflow that says when it has begun and never ends by itself."""
    began = threading.Event()

    @scene.app.workflow("wait")
    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    return began


def test_a_run_that_takes_too_long_is_stopped_without_a_look(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager tells the workers of its own process, which ask only seldom."""
    monkeypatch.setattr(pool, "LOOK_PAUSE", 3600.0)
    wait_for_ever(scene)
    scene.app.schedule("wait", "slow", None, every(hours=1), timeout=timedelta(seconds=1))
    with running(scene, manager_polling_interval=0.1):
        [told] = scene.events.wait_for("execution.failed", external_id="slow")
    assert "JobTimeout" in told.fields["failure"]


def test_a_process_that_was_buried_stops_its_jobs_and_goes_on_as_another(scene: Scene) -> None:
    began = wait_for_ever(scene)
    ad_hoc(scene, "wait")
    with running(scene, server_lease="1s") as service:
        assert began.wait(PATIENCE)
        before = service.owner
        with scene.store.writing() as tx:
            tx.connection.execute(delete(server))
        [dead] = scene.events.wait_for("server.dead")
        eventually(lambda: service.owner != before)
        assert dead.fields == {"owner": before, "again": service.owner, "jobs": ["wait"]}
        ad_hoc(scene)
        [done] = scene.events.wait_for("execution.completed", workflow="work")
        assert scene.execution(done.fields["execution_id"]).owner == service.owner


def test_no_run_begins_once_the_lease_may_be_over(scene: Scene) -> None:
    with running(scene) as service:
        assert service._lease_time.lasts(service.owner)
        assert not service._lease_time.lasts("another")
        service._keeper._loop.stop()  # which would renew it
        service._lease_time.end()
        ad_hoc(scene)
        scene.events.wait_for("execution.handed_back", workflow="work")
        assert scene.ended(ExecutionState.COMPLETED) == []


def test_a_process_that_has_stopped_has_closed_its_store_and_ended_its_threads(
    scene: Scene,
) -> None:
    store = Store(scene.url, durable=False)
    before = set(threading.enumerate())
    service = Service(scene.app, store=store)
    service.start()
    begun = {one.name for one in set(threading.enumerate()) - before}
    service.stop()

    assert {"headway-worker", "headway-beat", "headway-health", "headway-pulse"} <= begun
    # The two threads for the pool's statements have been told to end, and nobody waits for them.
    ending = {"headway-store_0", "headway-store_1"}
    assert {one.name for one in set(threading.enumerate()) - before} <= ending
    assert History(scene.store).servers.all() == []
