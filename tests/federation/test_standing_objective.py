"""What a start gives a deployment: its standing objective, and someone who watches deadlines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from headway.domain.azolla.artifacts import Objective, ObjectiveStatus
from headway.service import Service
from headway.store import objectives
from headway.store.tables import objective
from headway.wakeups import Role
from tests.builders import Scene, eventually

BLUEPRINT = '[blueprints.b]\ncross_azolla_reads = []\nstores = ["pause_state"]\n'


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False) as scene:
        yield scene


@contextmanager
def started(scene: Scene, **options: Any) -> Iterator[None]:
    service = Service(scene.app, **options)
    service.start()
    try:
        yield
    finally:
        service.request_stop(grace=0)
        service.stop()


def standing(scene: Scene) -> Objective | None:
    with scene.store.reading() as tx:
        return objectives.find_standing(tx)


def test_the_first_start_creates_it_and_the_next_leaves_it(scene: Scene) -> None:
    with started(scene):
        first = standing(scene)
    assert first is not None
    told = (first.objective_id, first.azolla_id, first.title, first.status)
    assert told == ("standing", "tests", "tests", ObjectiveStatus.IN_PROGRESS)
    with started(scene):
        assert standing(scene) == first


def test_only_the_manager_creates_it(scene: Scene) -> None:
    with started(scene, roles=[Role.WORKER, Role.DISPATCHER]):
        assert standing(scene) is None


def test_the_registrys_id_wins_and_stays(scene: Scene, tmp_path: Path) -> None:
    with started(scene):
        assert standing(scene) is not None
    file = tmp_path / "azolla.toml"
    file.write_text(f'version = 1\n[azolla]\nid = "berlin"\nblueprint = "b"\n{BLUEPRINT}')
    scene.configure(azolla_registry=str(file))
    with started(scene):
        named = standing(scene)
    assert named is not None and (named.azolla_id, named.title) == ("berlin", "tests")
    scene.configure()
    with started(scene):
        assert standing(scene) == named, "no registry is no reason to rename it"


def test_a_started_deployment_writes_what_is_overdue(scene: Scene) -> None:
    desk = scene.app.azolla
    desk.objective("clean", objective_id="clean", urgency=3)
    with scene.store.writing() as tx:
        long_ago = tx.now - timedelta(days=3)
        tx.connection.execute(update(objective).values(updated_at=long_ago))
    with started(scene):
        eventually(lambda: [one.objective_id for one in desk.pause_states()] == ["clean"])
    scene.app.runtime.store.close()


def test_a_started_deployment_leaves_pauses_of_what_it_runs(scene: Scene) -> None:
    scene.configure(default_max_retries=1)
    scene.failing.add("load-users")
    scene.app.schedule("work", "load-users", None)
    desk = scene.app.azolla
    with started(scene):
        scene.app.trigger("load-users")
        eventually(lambda: len(desk.pause_states(reason="GATE_FAILED")) == 1)
    [pause] = desk.pause_states()
    assert pause.azolla_id == "tests"
    assert "of load-users: RuntimeError: told to fail" in pause.prioritized_actions[0]
    scene.app.runtime.store.close()
