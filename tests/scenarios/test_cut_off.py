"""Runs that must not overlap are stopped before their worker's lease is over, if nobody answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from headway import Run
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.service import Service
from tests.builders import Scene, eventually
from tests.postgres_server import PostgresServer
from tests.runner import isolated_jobs as jobs
from tests.runner.test_isolation import is_gone
from tests.scenarios.test_hung_database import hung

LEASE = 6.0
Away = Callable[[PostgresServer], AbstractContextManager[None]]
EXCLUSIVE = ("in-loop", "in-thread", "in-process")


class Bodies:
    """Which bodies go on in this process, and one gate for all of them."""

    def __init__(self) -> None:
        self.going_on: set[str] = set()
        self.released = threading.Event()

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        self.going_on.add(name)
        try:
            yield
        finally:
            self.going_on.discard(name)

    def declare(self, scene: Scene, folder: Path) -> None:
        """Three that must not overlap, and one that may."""

        async def in_loop() -> None:
            with self.inside("in-loop"):
                while not self.released.is_set():
                    await asyncio.sleep(0.01)

        def in_thread(run: Run) -> None:
            with self.inside("in-thread"):
                while not self.released.wait(0.01):
                    run.raise_if_cancelled()

        def ordinary(run: Run) -> None:
            with self.inside("ordinary"):
                while not (self.released.wait(0.01) or run.cancelled):
                    pass

        app = scene.app
        app.workflow("in-loop", stop_when_cut_off=True)(in_loop)
        app.workflow("in-thread", stop_when_cut_off=True)(in_thread)
        steps = (jobs.note_pid, jobs.stay_half_way)
        app.workflow("in-process", steps=steps, isolated=True, stop_when_cut_off=True)
        app.workflow("ordinary")(ordinary)
        place = jobs.Place(folder=str(folder)).model_dump_json()
        inputs = dict.fromkeys(("in-loop", "in-thread", "ordinary"), "null") | {"in-process": place}
        scene.enqueue(*(NewEntry(name, Source.AD_HOC, told) for name, told in inputs.items()))


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    server.stop()
    yield
    server.start(durable=True)


@pytest.mark.full
@pytest.mark.parametrize("away", [stopped, hung])
def test_what_must_not_overlap_ends_with_the_contact_and_the_rest_goes_on(
    own_server: PostgresServer, tmp_path: Path, away: Away
) -> None:
    bodies = Bodies()
    settings = {"server_lease": LEASE, "worker_count": 4, "max_active_jobs": None}
    with Scene(own_server.url(), virtual_time=False, **settings) as scene:
        service = Service(scene.app)
        bodies.declare(scene, tmp_path)
        service.start()
        try:
            eventually(lambda: len(bodies.going_on) == 3 and (tmp_path / "pid").exists())
            pid = int((tmp_path / "pid").read_text())
            begun = {one.workflow: one.id for one in scene.history.executions.all()}
            scene.store.close()
            with away(own_server):
                [told] = scene.events.wait_for("server.cut_off")
                eventually(lambda: is_gone(pid))
                eventually(lambda: bodies.going_on == {"ordinary"})
            assert told.fields["seconds"] > LEASE * 4 / 5
            assert sorted(told.fields["executions"]) == sorted(begun[name] for name in EXCLUSIVE)
            bodies.released.set()
            (tmp_path / "released").touch()
            eventually(lambda: len(scene.ended(ExecutionState.COMPLETED)) == 4)
        finally:
            bodies.released.set()
            service.request_stop(grace=0)
            service.stop()

        ended = {one.id: one for one in scene.history.executions.all()}
        for name in EXCLUSIVE:
            assert ended[begun[name]].state is ExecutionState.HANDED_BACK
        assert {one.crashes for one in ended.values()} == {0}, "nobody is charged"
