"""A job that makes its own worker stop, or lose its lease, is not begun for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headway import every
from headway.domain.attempts import MOST_HAND_BACKS
from headway.domain.execution import FailureCode
from headway.runner import pool as pool_module
from headway.runner.pool import WorkerPool
from headway.store import leases
from headway.store.servers import ServerProcess
from tests.builders import OWNER, Scene, eventually
from tests.runner.conftest import StartPool, starting_pools

CRASHES = 2
BEGINS = CRASHES * (MOST_HAND_BACKS + 1)


@pytest.fixture
def start_leased(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartPool]:
    monkeypatch.setattr(pool_module, "LOOK_PAUSE", 0.05)
    with scene.store.writing() as tx:
        server = ServerProcess(OWNER, "host", 1, ["worker"], ["job"], 4)
        leases.register(tx, server, timedelta(hours=1))
    with starting_pools(scene, leased=True) as start:
        yield start


class StopsItsWorker:
    """A job that does what SIGTERM to its own process does, or an expired lease."""

    def __init__(self, scene: Scene, *, loses_lease: bool) -> None:
        self.begun = 0
        self.pool: WorkerPool | None = None
        self._loses_lease = loses_lease
        scene.app.workflow("job")(self.run)
        scene.app.schedule("job", "job", None, every(hours=1))
        scene.configure(max_crashes=CRASHES)
        scene.apply()
        scene.manage()

    async def run(self) -> None:
        self.begun += 1
        while self.pool is None:  # it is about to be told which
            await asyncio.sleep(0)
        if self._loses_lease:
            self.pool.change_owner(OWNER)
        else:
            self.pool.request_stop(grace=0)
        await asyncio.Event().wait()


@pytest.mark.parametrize("loses_lease", [False, True], ids=["a stop", "a lost lease"])
def test_a_job_that_takes_its_worker_down_becomes_a_dead_letter(
    scene: Scene, start_leased: StartPool, loses_lease: bool
) -> None:
    job = StopsItsWorker(scene, loses_lease=loses_lease)
    for number in range(1, BEGINS + 1):
        assert not scene.history.dead_letters.awaiting(), f"after {number - 1} begins"
        [execution_id] = scene.dispatch().dispatched
        job.pool = None
        job.pool = start_leased(max_crashes=CRASHES)
        eventually(lambda key=execution_id: scene.execution(key).state.terminal)  # type: ignore[misc]
        job.pool.request_stop(grace=0)
        job.pool.stop()

    assert job.begun == BEGINS
    [letter] = scene.history.dead_letters.awaiting()
    assert letter.reason.endswith("the last for being handed back too often")
    failed = scene.events.named("execution.failed")
    assert len(failed) == CRASHES
    assert all(FailureCode.WORKER_LOST in one.fields["failure"] for one in failed)
    assert scene.events.wait_for("manifest.dead_lettered", external_id="job")
    assert scene.history.queue.all() == []
