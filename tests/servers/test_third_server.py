"""The task server that the guide writes out, run as it stands there: two programs, one database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.domain.execution import Execution, ExecutionState, FailureCode
from headway.history import History
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import eventually
from tests.surface.test_readme import HEADWAY, ROOT, blocks, save_programs

GUIDE = ROOT / "docs" / "guides" / "task-servers.md"
COMPLETED = ExecutionState.COMPLETED
SLOW = 'print("training", model, flush=True)\n    __import__("time").sleep(1000)'


class Place:
    """A folder with the programs of the guide, and their database on the kind under test."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        save_programs(GUIDE, folder)
        self.change("sqlite:///shop.db", url)
        self.environment = os.environ | {"HEADWAY_SERVER_LEASE": "5s"}
        self.store = Store(url)

    def change(self, old: str, new: str) -> None:
        text = (self.folder / "shop.py").read_text("utf-8")
        assert old in text
        (self.folder / "shop.py").write_text(text.replace(old, new), "utf-8")

    @contextmanager
    def running(self, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def attempts(self, external_id: str) -> list[Execution]:
        return History(self.store).executions.all(external_id)

    def completed(self, external_id: str) -> bool:
        return COMPLETED in [one.state for one in self.attempts(external_id)]


@pytest.fixture
def place(tmp_path: Path, database_url: str) -> Iterator[Place]:
    place = Place(tmp_path, database_url)
    migrate(place.store)
    yield place
    place.store.close()


def other_side() -> list[str]:
    """The command by which the guide starts the other side."""
    [shown] = [text for text in blocks(GUIDE, "console") if text.startswith("$ python")]
    code = shown.splitlines()[0].removeprefix('$ python -c "').removesuffix('"')
    return [sys.executable, "-c", code]


def shown_output() -> list[str]:
    [shown] = [text for text in blocks(GUIDE, "console") if text.startswith("$ python")]
    return shown.splitlines()[1:]


def lines_of(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def test_the_server_of_the_guide_runs_what_is_sent_to_it(place: Place) -> None:
    with place.running(*other_side()) as gpu, place.running(HEADWAY, "run", "shop:hw"):
        printed = lines_of(gpu, 2)
        eventually(lambda: place.completed("load-orders") and place.completed("train-prices"))

    trained, loaded = place.attempts("train-prices")[0], place.attempts("load-orders")[0]
    assert printed == [shown_output()[0], f"execution {trained.id} completed"]
    # Both manifests are due at once: whichever is sent first gets the lower id.
    assert {trained.id, loaded.id} == {1, 2}
    assert shown_output()[1] in {f"execution {one.id} completed" for one in (trained, loaded)}
    assert (trained.task_server, loaded.task_server) == ("gpu", "local")
    assert trained.owner is not None and f"-{gpu.pid}-" in trained.owner
    assert loaded.owner is not None and f"-{gpu.pid}-" not in loaded.owner


@pytest.mark.full
def test_what_a_killed_executor_ran_starts_again_elsewhere(place: Place) -> None:
    quick = 'print("training", model, flush=True)'
    place.change(quick, SLOW)
    with place.running(HEADWAY, "run", "shop:hw"):
        with place.running(*other_side()) as doomed:
            assert lines_of(doomed, 1) == ["training prices"]
            place.change(SLOW, quick)
            doomed.send_signal(signal.SIGKILL)
        with place.running(*other_side()):
            eventually(lambda: place.completed("train-prices"))

    first, *_, last = place.attempts("train-prices")
    assert first.failure is not None and first.failure.type == FailureCode.WORKER_LOST
    assert (last.state, last.task_server, last.crashes) == (COMPLETED, "gpu", 1)
