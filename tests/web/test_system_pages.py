"""Servers, settings and the audit trail in the dashboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest

from headway import every
from headway.config import Settings
from headway.domain.actions import Action
from headway.history.settings import Origin, shown_settings
from headway.store import audit
from headway.store.leases import register
from headway.store.servers import ServerProcess
from tests.builders import OWNER, Scene
from tests.web.parts import facts, items, links, plain, pressed, rows, said
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


@pytest.fixture
def still(sqlite_url: str) -> Iterator[Scene]:
    """A deployment in which time stands still."""
    with Scene(sqlite_url, max_active_jobs=4) as scene:
        yield scene
        scene.app.runtime.store.close()


NOON = "2030-01-07 12:00:00"


def alive(scene: Scene, name: str, roles: tuple[str, ...], slots: int, seconds: int = 30) -> None:
    workflows = ("work", "sort") if slots else ()
    process = ServerProcess(name, f"host-{name}", 812, roles, workflows, slots)
    with scene.store.writing() as tx:
        register(tx, process, timedelta(seconds=seconds))


def test_servers_are_told_with_their_leases_and_what_they_run(still: Scene) -> None:
    alive(still, "gone", ("worker",), 4, seconds=1)
    alive(still, "slow", ("manager",), 0)
    still.clock.advance(seconds=11)
    alive(still, OWNER, ("worker", "dispatcher"), 4)
    still.pending("work")
    still.claim()
    with visiting(still.app, still.store) as visitor:
        page = visitor.get("/servers").text
    assert re.findall(r'<h2 id="server-\d+"[^>]*>([^<]*)</h2>', page) == ["gone", "slow", OWNER]
    numbers = said(page, "servers")
    assert numbers.startswith(
        "Alive 2 Slots 4 jobs they can run at once Running 1 jobs now Late or dead 2 a third of "
        "the lease without a beat gone lease is over Process 812 on host-gone Roles worker Started "
        f"{NOON} Lease renewed {NOON}, holds until 2030-01-07 12:00:01 Workflows 2 known "
        "sort, work Slots in use 0 of 4 Nothing runs here now. slow late Process 812 on host-slow "
    )
    assert "Workflows" not in numbers[numbers.index("slow late") : numbers.index(f"{OWNER} alive")]
    assert 'aria-label="1 of 4 slots in use"' in page and 'rect width="25.0"' in page
    assert links(page, "servers")[1:] == [("work #1", "/executions/1")]
    assert items(page, "servers") == ["work #1 _work, 2030-01-07 12:00:11"]
    assert facts(page)["Roles"] == "dispatcher worker"
    assert "belong to no living server" not in page
    assert re.findall(r'class="stat is-(\w+)"', page) == ["alive", "failed"]


def test_runs_of_servers_that_are_gone_are_listed(still: Scene) -> None:
    alive(still, "other", ("worker",), 4)
    for _ in range(12):
        still.pending("work")
    still.claim()
    with visiting(still.app, still.store) as visitor:
        page = visitor.get("/servers").text
    lost = [text for text, _ in links(page, "servers") if text.startswith("#")]
    assert lost == [f"#{one}" for one in range(12, 2, -1)], "the newest ten"
    assert "Nothing runs here now." in said(page, "servers")


def test_settings_are_found_by_name_and_meaning_and_counted(still: Scene) -> None:
    with visiting(still.app, still.store) as visitor:
        page = visitor.get("/settings").text
        changed = visitor.get("/settings?origin=changed&search=+JOBS+Pending+").text
        nothing = visitor.get("/settings?origin=changed&search=lease").text
    shown = {row[0].split()[0]: row for row in rows(page)}
    assert shown["max_active_jobs"][1:4] == ["4", "10", "code"]
    assert shown["server_lease"][3] == "default"
    changes = [row[0].split()[0] for row in rows(page) if row[3] != "default"]
    counts = dict(re.findall(r'>(All|Changed) <span class="count">(\d+)<', page))
    assert counts == {"All": str(len(Settings.model_fields)), "Changed": str(len(changes))}
    assert facts(page)["Application"] == "tests"
    assert facts(page)["Database"].startswith("sqlite:///")
    assert pressed(page) == [f"All {counts['All']}"]
    assert pressed(changed) == [f"Changed {counts['Changed']}"]
    assert "max_active_jobs" in [row[0].split()[0] for row in rows(changed)]
    assert {row[0].split()[0] for row in rows(changed)} <= set(changes)
    assert 'name="search" value=" JOBS Pending "' in changed
    assert 'name="origin" value="changed"' in changed
    assert page.count("setting-changed") == len(changes)
    assert "No setting is like that" in said(nothing, "main")


def test_the_audit_trail_tells_everything_about_each_action(still: Scene) -> None:
    with still.store.writing() as tx:
        audit.note(tx, "ada", Action.TRIGGER, "load-users", {"entry": 7})
        audit.note(tx, "bob", Action.DENIED, "GET /audit", {})
    with visiting(still.app, still.store) as visitor:
        page = visitor.get("/audit").text
        of_ada = visitor.get("/audit?actor=ada&action=manifest.trigger&subject=load-users").text
        nobody = visitor.get("/audit?action=dead_letter.requeue").text
    assert rows(page) == [
        [NOON, "bob", "denied", "GET /audit", "–"],
        [NOON, "ada", "manifest.trigger", "load-users", '{"entry": 7}'],
    ]
    assert links(page, "records")[3:] == [
        ("ada", "?actor=ada"),
        ("manifest.trigger", "?action=manifest.trigger"),
        ("load-users", "?subject=load-users"),
    ]
    assert page.count("tag-bad") == 1
    offered = re.findall(r'<option value="([^"]+)"', page)
    assert offered == sorted({*Action, "membrane.query"})
    assert len(rows(of_ada)) == 1
    assert re.findall(r'<option value="([^"]+)" selected', of_ada) == ["manifest.trigger"]
    typed = dict(re.findall(r'name="(actor|subject)" value="([^"]*)"', of_ada))
    assert typed == {"actor": "ada", "subject": "load-users"}
    assert ("Show all", "/audit") in links(of_ada) and ("Show all", "/audit") not in links(page)
    assert "Nothing like that" in said(nobody, "records")


def test_an_audit_trail_without_rows_says_so(still: Scene) -> None:
    with visiting(still.app, still.store) as visitor:
        page = visitor.get("/audit").text
    assert said(page, "records").startswith("Nobody has done anything yet")


def test_every_page_tells_who_looks_and_where_they_are(still: Scene) -> None:
    with visiting(still.app, still.store) as visitor:
        page = visitor.get("/servers").text
        below = visitor.as_("read").get("/groups").text
    assert said(page, "crumbs") == "Servers"
    assert pressed(f"<main id='x'>{page}</main>".replace("id='x'", 'id="all"'), "all") == [
        "Servers"
    ]
    assert pressed(below, "nav") == ["Groups"]
    assert re.search(r"<summary[^>]*>.*?the admin.*?</summary>", page, re.S)
    assert "the admin May admin Log out" in plain(page) and "the read May read" in plain(below)
    assert unescape(page).count('action="/logout"') == 1
    assert ("Audit trail", "/audit") in links(page, "nav")
    assert [address for _, address in links(below, "nav")] == [
        "/", "/manifests", "/groups", "/graph", "/timeline", "/executions", "/queue",
        "/dead-letters", "/servers", "/azolla", "/settings",
    ]  # fmt: skip
