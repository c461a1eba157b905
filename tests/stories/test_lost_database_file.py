"""The SQLite file is deleted or replaced under a process, which reports it once and stops."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from headway.domain.execution import ExecutionState
from headway.domain.work_queue import NewEntry, Source
from headway.service import Service
from headway.store.engine import Store
from headway.store.tables import server
from headway.web.app import build_app
from headway.web.failures import failure_of
from headway.web.security.access import Access
from tests.builders import PATIENCE, Scene, eventually
from tests.scenarios.deployment import Deployment
from tests.web.site import Site, listening

LOST = "the database file was deleted or replaced"
DATABASE_LOST = 74


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "headway.db"


@pytest.fixture
def scene(file: Path) -> Iterator[Scene]:
    with Scene(f"sqlite:///{file}", virtual_time=False) as scene:
        yield scene


@pytest.fixture
def service(scene: Scene) -> Iterator[Service]:
    service = Service(scene.app, store=Store(scene.url))
    service.start()
    yield service
    service.stop()


@pytest.fixture
def site(scene: Scene, service: Service) -> Iterator[Site]:
    app = build_app(scene.app, scene.store, Access(lambda request: None), health=service.health)
    with listening(app) as site:
        yield site


def delete(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()


def replace(file: Path) -> None:
    backup = file.with_name("backup.db")
    source, target = sqlite3.connect(file), sqlite3.connect(backup)
    source.backup(target)
    source.close()
    target.close()
    backup.rename(file)


@pytest.mark.parametrize("lose", [delete, replace])
def test_an_idle_service_finds_it_by_its_pulse_and_says_so_once(
    scene: Scene,
    service: Service,
    site: Site,
    file: Path,
    lose: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene.events.wait_for("service.pulse")
    assert site.get("/readyz").status == 200
    lose(file)
    [event] = scene.events.wait_for("service.database_lost")
    assert str(file) in event.fields["error"]
    assert [reason.split(" since ")[0] for reason in service.health().reasons] == [LOST]
    answer = site.get("/readyz")
    assert (answer.status, answer.json()["reasons"]) == (503, [LOST])
    assert service.store.lost is not None
    assert failure_of(service.store.lost).detail.startswith(LOST)
    service.stop()
    service.stop()
    assert file.exists() == (lose is replace), "to stop, also twice, makes no new file"
    errors = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert [one.getMessage().split()[0] for one in errors] == ["service.database_lost"]


def test_a_run_that_is_going_on_is_stopped_and_not_recorded(scene: Scene, file: Path) -> None:
    started, goes_on = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        goes_on.wait(PATIENCE)

    scene.app.workflow("hold")(hold)
    service = Service(scene.app, store=Store(scene.url))
    service.start()
    scene.enqueue(NewEntry("hold", Source.AD_HOC, "null"))
    assert started.wait(PATIENCE)
    replace(file)
    scene.events.wait_for("service.database_lost")
    goes_on.set()
    service.stop()
    assert scene.events.named("execution.completed") == []
    scene.store.close()
    assert [one.state for one in scene.history.executions.all()] == [ExecutionState.IN_PROGRESS]


def test_nothing_that_is_due_is_started_in_the_lost_file(
    scene: Scene, service: Service, file: Path
) -> None:
    # Housekeeping begins with the first pulse; what it has committed is reported after a loss too.
    for first in ("service.pulse", "manager.swept", "retention.pass"):
        scene.events.wait_for(first)
    delete(file)
    scene.events.wait_for("service.database_lost")
    seen = len(scene.events.events)
    with Scene(scene.url, virtual_time=False) as second:
        second.enqueue(NewEntry("work", Source.AD_HOC, "null"))
        second.dispatch()
        assert second.run().claimed == 1
    service.stop()
    names = {event.name for event in scene.events.events[seen:]}
    assert names <= {"service.stopped", "worker.abandoned"}


@pytest.fixture
def deployment(file: Path) -> Iterator[Deployment]:
    deployment = Deployment(f"sqlite:///{file}", file.parent)
    yield deployment
    deployment.close()


def servers(deployment: Deployment) -> int:
    with deployment.store.reading() as tx:
        return tx.connection.execute(select(func.count()).select_from(server)).scalar_one()


@pytest.mark.parametrize("arguments", [(), ("--processes", "2")])
def test_headway_run_ends_with_an_exit_code_of_its_own(
    deployment: Deployment, file: Path, arguments: tuple[str, ...]
) -> None:
    process = deployment.start(*arguments)
    deployment.wait_for("start", 2)
    eventually(lambda: servers(deployment) == len(arguments or "1"))
    deployment.store.close()
    delete(file)
    assert process.wait(PATIENCE) == DATABASE_LOST, deployment.log()
    lines = [line for line in deployment.log().splitlines() if f"database file {file} was" in line]
    assert len(lines) == len(arguments or "1"), deployment.log()
    assert "Traceback" not in deployment.log()
    assert deployment.evidence("start").total() == 2


def test_of_two_processes_on_one_path_only_the_second_goes_on(
    deployment: Deployment, file: Path
) -> None:
    first = deployment.start()
    deployment.wait_for("start", 2)
    deployment.store.close()
    delete(file)
    second = deployment.start()
    assert first.wait(PATIENCE) == DATABASE_LOST, deployment.log()
    deployment.wait_for("start", 4)
    deployment.release()
    eventually(lambda: file.exists())
    deployment.wait_until_completed(2)
    deployment.stop(second)
    assert deployment.states() == {ExecutionState.COMPLETED: 2}
