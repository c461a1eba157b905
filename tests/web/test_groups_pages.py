"""The list of groups and the page of one: what they show, and what can be changed there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from headway.domain.views import AuditFilter, GroupOverview
from headway.web.pages.group_form import GroupForm
from headway.web.security.bodies import Form
from tests.builders import Scene
from tests.web.deployment import Pages, declare_shop, pages_of

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False) as scene:
        declare_shop(scene)
        yield scene


@pytest.fixture
def pages(scene: Scene) -> Iterator[Pages]:
    with pages_of(scene) as pages:
        yield pages


def group(scene: Scene, name: str = "extract") -> GroupOverview:
    return scene.history.groups.detail(name).overview


def version(page: str) -> str:
    return str(re.findall(r'name="version" value="(\w+)"', page)[0])


def typed(page: str, field: str) -> str:
    return str(re.findall(rf'id="{field}"[^>]*? value="([^"]*)"', page)[0])


def test_the_list_shows_every_group_with_its_slots_and_the_graph(
    scene: Scene, pages: Pages
) -> None:
    scene.manage()
    scene.dispatch()
    page = pages.get("/groups").text
    assert page.count('aria-label="2 of 2 slots taken"') == 1
    assert page.count('href="/groups/extract"') == 2  # in the graph and in the table
    assert page.count('class="edge"') == 1


def test_the_list_can_be_searched(scene: Scene, pages: Pages) -> None:
    scene.app.runtime.set_group("load", enabled=False)
    found = {"": ["extract", "load"], "search=xtr": ["extract"], "switched=off": ["load"]}
    for query, shown in found.items():
        page = pages.get(f"/groups?{query}").text
        assert re.findall(r'class="name one-line" href="/groups/(\w+)"', page) == shown


def test_a_search_without_result_says_so(pages: Pages) -> None:
    assert "No group is like that" in pages.get("/groups?search=zzz").text


def test_a_group_shows_who_holds_its_slots_what_waits_and_its_manifests(
    scene: Scene, pages: Pages
) -> None:
    scene.app.runtime.set_group("extract", max_active_jobs=1)
    scene.manage()
    scene.dispatch()
    page = pages.get("/groups/extract").text
    holders, waiting, manifests = (
        page[page.index(f'id="{part}-title"') :] for part in ("holders", "waiting", "manifests")
    )
    [held] = re.findall(r'href="/manifests/(extract-\w)"', holders[: holders.index("</table>")])
    [waits] = re.findall(r'href="/manifests/(extract-\w)"', waiting[: waiting.index("</table>")])
    assert {held, waits} == {"extract-a", "extract-b"}
    assert manifests.count('class="strip"') == 2
    assert "node-here" in page


def test_a_new_cap_and_priority_hold_at_once_and_are_noted(scene: Scene, pages: Pages) -> None:
    seen = version(pages.get("/groups/extract").text)
    fields = {"max_active_jobs": "1", "priority": "31", "version": seen}
    answer = pages.post("/groups/extract/settings", fields)
    assert (answer.status, answer.headers["location"]) == (303, "/groups/extract")
    assert (group(scene).max_active_jobs, group(scene).priority) == (1, 31)
    page = pages.get("/groups/extract").text
    assert (typed(page, "max_active_jobs"), typed(page, "priority")) == ("1", "31")
    [note] = scene.history.audit.page(AuditFilter(actor="ada")).items
    assert note.subject == "extract"
    scene.manage()
    assert len(scene.dispatch().dispatched) == 1


def test_an_empty_cap_is_no_cap(scene: Scene, pages: Pages) -> None:
    pages.post("/groups/extract/settings", {"max_active_jobs": " ", "priority": "0"})
    assert group(scene).max_active_jobs is None


def test_wrong_values_are_refused_at_their_fields_and_kept_there(
    scene: Scene, pages: Pages
) -> None:
    fields = {"max_active_jobs": "no<b>", "priority": "32"}
    answer = pages.post("/groups/extract/settings", fields)
    assert answer.status == 422
    assert "must be a whole number of at least 1, or empty for no cap" in answer.text
    assert "must be a whole number from 0 to 31" in answer.text
    assert answer.text.count('aria-invalid="true"') == 2
    assert unescape(typed(answer.text, "max_active_jobs")) == "no<b>"
    assert (group(scene).max_active_jobs, group(scene).priority) == (2, 7)


@pytest.mark.parametrize("cap", ["0", "-1", "1.5", "many", "1000001", "9" * 20, "٣", "1_0"])
def test_a_cap_that_is_none(cap: str) -> None:
    form = GroupForm.sent(Form((("max_active_jobs", cap), ("priority", "31"))))
    assert list(form.errors) == ["max_active_jobs"]
    assert form.values == {"priority": 31}


@pytest.mark.parametrize("priority", ["", "32", "-1", "high"])
def test_a_priority_that_is_none(priority: str) -> None:
    form = GroupForm.sent(Form((("max_active_jobs", " 4 "), ("priority", priority))))
    assert list(form.errors) == ["priority"]
    assert form.values == {"max_active_jobs": 4}


def test_who_has_not_seen_the_present_values_is_shown_them_first(
    scene: Scene, pages: Pages
) -> None:
    seen = version(pages.get("/groups/extract").text)
    scene.app.runtime.set_group("extract", max_active_jobs=9, priority=1)
    fields = {"max_active_jobs": "1", "priority": "7", "version": seen}
    stale = pages.post("/groups/extract/settings", fields)
    assert stale.status == 409
    assert "It now has a cap of 9 and priority 1" in stale.text
    assert group(scene).max_active_jobs == 9
    again = fields | {"version": version(stale.text)}
    assert pages.post("/groups/extract/settings", again).status == 303
    assert group(scene).max_active_jobs == 1


def test_a_group_that_is_off_lets_nothing_through_until_it_is_on(
    scene: Scene, pages: Pages
) -> None:
    answer = pages.post("/groups/extract/switch", {"enabled": "no"})
    assert answer.headers["location"] == "/groups/extract"
    assert "Nothing of this group is queued" in pages.get("/groups/extract").text
    assert not scene.manage().queued
    pages.post("/groups/extract/switch", {"enabled": "yes"})
    assert scene.manage().queued == 2


def test_a_switch_in_the_list_leads_back_to_the_list(pages: Pages) -> None:
    answer = pages.post("/groups/extract/switch", {"enabled": "no", "back": "list"})
    assert answer.headers["location"] == "/groups"


def test_a_whole_group_is_run_and_cancelled(scene: Scene, pages: Pages) -> None:
    assert pages.post("/groups/extract/trigger").status == 303
    assert group(scene).queued == 2
    assert pages.post("/groups/extract/cancel").status == 303
    assert group(scene).queued == 0


def test_who_may_only_look_is_offered_nothing_and_refused(scene: Scene, pages: Pages) -> None:
    reader = Pages(pages.site, "rita")
    page = reader.get("/groups/extract").text
    assert "You may look at this, but not change it" in page
    assert "/groups/extract/trigger" not in page
    assert 'role="switch"' not in reader.get("/groups").text
    for act in ("settings", "switch", "trigger", "cancel"):
        assert reader.post(f"/groups/extract/{act}", {"enabled": "no"}).status == 403
    assert group(scene).enabled


def test_a_group_that_is_not_there_is_not_found(pages: Pages) -> None:
    assert pages.get("/groups/nobody").status == 404
    assert pages.post("/groups/nobody/switch", {"enabled": "no"}).status == 404


def test_a_form_of_a_group_keeps_what_is_right_and_its_version() -> None:
    fields = (("max_active_jobs", " 12 "), ("priority", " 3 "), ("version", "1f"))
    form = GroupForm.sent(Form(fields))
    assert (form.cap, form.priority, form.version, form.stale) == ("12", "3", "1f", False)
    assert (form.values, form.errors) == ({"max_active_jobs": 12, "priority": 3}, {})
    assert GroupForm.sent(Form((("priority", "0"),))).values == {
        "max_active_jobs": None,
        "priority": 0,
    }
    largest = GroupForm.sent(Form((("max_active_jobs", "1000000"), ("priority", "x"))))
    assert largest.values == {"max_active_jobs": 1_000_000}
    assert largest.errors == {"priority": "must be a whole number from 0 to 31"}


@on_sqlite
def test_what_was_typed_is_kept_beside_what_was_changed_meanwhile(
    scene: Scene, pages: Pages
) -> None:
    seen = version(pages.get("/groups/extract").text)
    scene.app.runtime.set_group("extract", max_active_jobs=None)
    fields = {"max_active_jobs": "5", "priority": "9", "version": seen}
    stale = pages.post("/groups/extract/settings", fields).text
    assert "It now has no cap and priority 7." in stale
    assert (typed(stale, "max_active_jobs"), typed(stale, "priority")) == ("5", "9")
    wrong = pages.post("/groups/extract/settings", fields | {"priority": "99"})
    assert wrong.status == 422 and version(wrong.text) == seen
    assert wrong.text.count('aria-invalid="true"') == 1
    assert 'aria-describedby="priority-hint priority-error"' in wrong.text
