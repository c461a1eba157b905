"""A scene on both databases, worker pools on it, and gates at which jobs wait for the test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from headway.config import Settings
from headway.runner.pool import WorkerPool
from tests.builders import OWNER, PATIENCE, Scene

StartPool = Callable[..., WorkerPool]


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@contextmanager
def starting_pools(scene: Scene, **options: Any) -> Iterator[StartPool]:
    """Starts pools that never poll; all are stopped in the end, at once."""
    pools = []

    def start(**settings: Any) -> WorkerPool:
        chosen = {"worker_count": 4, "polling_interval": timedelta(hours=1)} | settings
        app = scene.app
        pool = WorkerPool(
            scene.store, app.registry, Settings(**chosen), app.observer, OWNER, **options
        )
        pool.start()
        pools.append(pool)
        return pool

    yield start
    for pool in pools:
        pool.request_stop(grace=0)
        pool.stop()


@pytest.fixture
def start_pool(scene: Scene) -> Iterator[StartPool]:
    with starting_pools(scene) as start:
        yield start


class Gate:
    """A place in a job: the test knows when the job is there and lets it go on."""

    def __init__(self) -> None:
        self._arrived = threading.Semaphore(0)
        self._open = threading.Event()

    def wait(self) -> None:
        """Called by the job: be here until the test opens."""
        self.note_arrival()
        self._open.wait(PATIENCE)

    def note_arrival(self) -> None:
        """Called by the job: go on, but let the test know."""
        self._arrived.release()

    def arrived(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._arrived.acquire(timeout=PATIENCE), "the job never came here"

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()
