"""Servers, settings and the audit trail in the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from headway import every
from headway.config import Settings
from headway.domain.actions import Action
from headway.history.settings import Origin, shown_settings
from headway.store import audit
from headway.store.leases import register
from headway.store.servers import ServerProcess
from tests.builders import OWNER, Scene
from tests.web.visiting import Visitor, visiting

XSS = "<script>alert(1)</script>"


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False, max_active_jobs=4) as scene:
        yield scene


@pytest.fixture
def visitor(scene: Scene) -> Iterator[Visitor]:
    with visiting(scene.app, scene.store) as visitor:
        yield visitor


def lives(scene: Scene, name: str, lease: timedelta = timedelta(seconds=15)) -> None:
    process = ServerProcess(name, "web-3", 812, ("manager", "worker"), ("work", XSS), 4)
    with scene.store.writing() as tx:
        register(tx, process, lease)


def test_servers_show_roles_slots_and_what_they_run(scene: Scene, visitor: Visitor) -> None:
    lives(scene, OWNER)
    scene.app.schedule("work", "load-users", None, every(hours=1))
    scene.apply()
    scene.manage()
    scene.dispatch()
    [run] = scene.claim()

    page = visitor.get("/servers").text
    said = visitor.text("/servers")

    assert "812 on web-3" in said
    assert "manager worker" in said
    assert "1 of 4" in said
    assert f'href="/executions/{run.id}"' in page
    assert "load-users" in said
    assert XSS not in page


def test_a_server_whose_lease_is_over_comes_first(scene: Scene, visitor: Visitor) -> None:
    lives(scene, "alive")
    lives(scene, "gone", -timedelta(seconds=1))
    said = visitor.text("/servers")
    assert said.index("gone lease is over") < said.index("alive")


def test_runs_of_nobody_are_told(scene: Scene, visitor: Visitor) -> None:
    scene.pending("work")
    [run] = scene.claim()
    assert f"about to start again: #{run.id}" in visitor.text("/servers")


def test_without_servers_it_says_how_to_start_one(visitor: Visitor) -> None:
    assert "headway run module:app" in visitor.text("/servers")


def test_settings_show_value_default_source_and_meaning(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = visitor.text("/settings")
    expected = "max_active_jobs HEADWAY_MAX_ACTIVE_JOBS 4 10 code Most jobs pending or running"
    assert expected in said
    for name in Settings.model_fields:
        assert name in said
    assert "delete_batch_size" not in visitor.text("/settings?origin=changed")
    assert "delete_batch_size" not in visitor.text("/settings?search=jobs+pending")
    assert "No setting is like that" in visitor.text("/settings?search=zzz")


def test_where_a_setting_comes_from() -> None:
    environ = {"HEADWAY_MAX_ACTIVE_JOBS": "4", "HEADWAY_WORKER_COUNT": "9"}
    settings = Settings.from_sources(environ, worker_count=2)
    origins = {one.name: one.origin for one in shown_settings(settings, environ)}
    assert origins["max_active_jobs"] is Origin.ENVIRONMENT
    assert origins["worker_count"] is Origin.CODE
    assert origins["server_lease"] is Origin.DEFAULT


def test_no_password_is_shown(scene: Scene, visitor: Visitor) -> None:
    scene.store.url = scene.store.url.set(password="canary")
    assert "canary" not in visitor.get("/settings").text


def noted(scene: Scene, count: int = 1, actor: str = "ada", subject: str = "load-users") -> None:
    with scene.store.writing() as tx:
        for number in range(count):
            audit.note(tx, actor, Action.TRIGGER, subject, {"entry": number})


def test_the_audit_trail_can_be_filtered_and_turned_over(scene: Scene, visitor: Visitor) -> None:
    noted(scene, 60)
    noted(scene, 1, actor="grace", subject=f"b{XSS}")

    page = visitor.get("/audit").text

    assert XSS not in page
    assert page.count("<tr>") == 1 + 50
    assert 'rel="next"' in page
    assert visitor.get("/audit?actor=grace").text.count("<tr>") == 1 + 1
    assert visitor.get("/audit?subject=load-users&action=manifest.trigger").text.count("<tr>") == 51
    assert "Nothing like that" in visitor.text("/audit?actor=nobody")


def test_only_an_admin_reads_the_audit_trail(visitor: Visitor) -> None:
    assert visitor.as_("operate").get("/audit").status == 403
    assert visitor.get("/audit").status == 200
