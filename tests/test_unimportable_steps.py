"""Isolated workflows whose process could not import a step: named when their worker starts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from headway.cli.narration import Narrator
from headway.executor import Executor
from headway.servers.inline import InlineServer
from headway.service import Service
from headway.wakeups import Role
from tests.builders import Scene
from tests.runner import hidden_jobs


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """An application with two such workflows, one isolated that is fine, and one not isolated."""
    with Scene(database_url, virtual_time=False) as one:
        one.app.workflow("load", steps=(hidden_jobs.registered["load"],), isolated=True)
        one.app.workflow("extract", steps=(hidden_jobs.registered["extract"],), isolated=True)
        one.app.workflow("found", steps=(hidden_jobs.registered["found"],), isolated=True)
        one.app.workflow("here", steps=(hidden_jobs.registered["load"],))
        yield one


@contextmanager
def running(scene: Scene, *roles: Role) -> Iterator[None]:
    service = Service(scene.app, roles)
    service.start()
    try:
        yield
    finally:
        service.stop()


def named_at_start(scene: Scene, process: AbstractContextManager[object]) -> list[str]:
    with process:
        pass
    found = scene.events.named("workflow.unimportable")
    assert all(repr(one.fields["workflow"]) in one.fields["reason"] for one in found)
    return [one.fields["workflow"] for one in found]


def test_a_worker_names_them_when_it_starts(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.app.observer.subscribe(Narrator())
    with caplog.at_level(logging.WARNING):
        assert named_at_start(scene, running(scene, Role.WORKER)) == ["extract", "load"]

    [line, _] = [one for one in caplog.records if one.name == "headway.cli"]
    assert line.levelno == logging.WARNING
    assert "every run fails: workflow 'extract': isolated = True: step" in line.getMessage()
    assert any("workflow.unimportable" in one.getMessage() for one in caplog.records)


def test_a_process_without_workers_names_none(scene: Scene) -> None:
    assert named_at_start(scene, running(scene, Role.MANAGER, Role.DISPATCHER)) == []


def test_an_executor_names_those_it_runs(scene: Scene) -> None:
    assert named_at_start(scene, Executor(scene.app, but=["load"])) == ["extract"]


def test_a_worker_does_not_name_what_runs_on_a_task_server(scene: Scene) -> None:
    scene.app.task_servers.add("gpu", InlineServer(print), workflows=["load"])

    assert named_at_start(scene, running(scene, Role.WORKER)) == ["extract"]
