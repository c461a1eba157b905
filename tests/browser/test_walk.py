"""A walk through the dashboard of a deployment that is at work, in a real browser.

Whatever a test is about: no console error, no request to another host, and nothing that axe-core
objects to on any page it comes to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from headway.domain.access import Scope
from tests.browser.plant import Plant, running_plant
from tests.browser.visitor import Visitor

SECONDS = 1000


@pytest.fixture
def plant(sqlite_url: str) -> Iterator[Plant]:
    with running_plant(sqlite_url) as plant:
        yield plant


@pytest.fixture
def visitor(chromium: Browser, plant: Plant) -> Iterator[Visitor]:
    with chromium.new_context(
        base_url=plant.dashboard.address, viewport={"width": 1280, "height": 900}
    ) as context:
        visitor = Visitor(context.new_page(), plant.host)
        visitor.page.set_default_timeout(30 * SECONDS)
        expect.set_options(timeout=30 * SECONDS)
        yield visitor
        assert visitor.complaints == []


@pytest.fixture
def page(visitor: Visitor, plant: Plant) -> Page:
    visitor.page.goto(plant.dashboard.entrance)
    assert "token" not in visitor.page.url  # the key is not left in the address
    return visitor.page


def confirm(page: Page, name: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def go(visitor: Visitor, path: str) -> Page:
    """Open a page, and see that everybody could use it."""
    visitor.page.goto(path)
    assert visitor.barriers() == [], path
    return visitor.page


@pytest.mark.gate
def test_what_runs_is_seen_live(visitor: Visitor, page: Page, plant: Plant) -> None:
    go(visitor, "/executions?manifest=clock-a")
    newest = page.locator("tbody tr").first
    before = newest.inner_text()
    plant.events.wait_for("execution.completed", 3, external_id="clock-a")
    expect(newest).not_to_have_text(before)  # by itself, without a reload
    go(visitor, "/")
    expect(page.get_by_text("Throughput").first).to_be_visible()


def test_a_group_is_found_in_the_graph(visitor: Visitor, page: Page) -> None:
    go(visitor, "/graph")
    page.locator("svg.graph .node", has_text="office").click()
    expect(page).to_have_url(re.compile("/groups/office$"))
    expect(page.get_by_role("heading", name="office", level=1)).to_be_visible()
    assert visitor.barriers() == []


def test_a_cap_is_changed_and_holds(visitor: Visitor, page: Page, plant: Plant) -> None:
    go(visitor, "/groups/presses")
    page.get_by_label("Cap").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#numbers")).to_contain_text("of 2")
    page.get_by_role("button", name="Run all").click()
    confirm(page, "Queue them")
    plant.events.wait_for("execution.started", 2, workflow="press")
    expect(page.locator("#holders tbody tr")).to_have_count(2)
    expect(page.locator("#waiting tbody tr")).to_have_count(4)
    plant.capped.opened.set()
    plant.events.wait_for("execution.completed", 6, workflow="press")
    assert plant.capped.most == 2


def test_a_cap_that_is_none_is_refused_at_the_field(visitor: Visitor, page: Page) -> None:
    visitor.expected = ("422",)
    go(visitor, "/groups/presses")
    page.get_by_label("Cap").fill("-3")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#cap-error")).to_contain_text("at least 1")
    expect(page.locator("#numbers")).to_contain_text("of 3")  # as it was


def test_a_group_switched_off_rests_while_others_go_on(
    visitor: Visitor, page: Page, plant: Plant
) -> None:
    plant.events.wait_for("execution.completed", 1, external_id="clock-a")
    go(visitor, "/groups/clock")
    page.get_by_role("button", name="Switch off").click()
    expect(page.get_by_role("button", name="Switch on")).to_be_visible()
    # Whatever was dispatched before is over once the other group has gone on for a while.
    others = len(plant.events.named("execution.completed", external_id="clock-b"))
    plant.events.wait_for("execution.completed", others + 2, external_id="clock-b")
    dispatched = len(plant.events.named("execution.started", external_id="clock-a"))
    plant.events.wait_for("execution.completed", others + 5, external_id="clock-b")
    assert len(plant.events.named("execution.started", external_id="clock-a")) == dispatched
    expect(page.locator("#waiting tbody tr")).to_have_count(0)
    page.get_by_role("button", name="Switch on").click()
    plant.events.wait_for("execution.started", dispatched + 1, external_id="clock-a")


@pytest.mark.gate
def test_a_run_is_triggered_with_a_form_and_watched(
    visitor: Visitor, page: Page, plant: Plant
) -> None:
    go(visitor, "/manifests/parcel")
    page.get_by_role("link", name="Trigger").click()
    form = page.get_by_role("dialog")
    form.get_by_label("address").fill("Hill 7")
    form.get_by_label("weight").fill("12")
    form.get_by_label("express").check()
    assert visitor.barriers() == []
    form.get_by_role("button", name="Trigger").click()
    [started] = plant.events.wait_for("execution.started", external_id="parcel")
    go(visitor, f"/executions/{started.fields['execution_id']}")
    steps = page.locator("#steps tbody tr")
    expect(steps).to_have_count(1)
    expect(steps).to_contain_text("pack")
    plant.packing.opened.set()
    expect(steps).to_have_count(2)  # live
    expect(steps.last).to_contain_text("post")
    plant.posting.opened.set()
    expect(page.locator("#execution")).to_have_attribute("data-state", "completed")
    expect(page.locator("#output")).to_contain_text("12 kg to Hill 7")
    assert visitor.barriers() == []


def test_after_a_form_the_frame_is_that_of_the_new_page(
    visitor: Visitor, page: Page, plant: Plant
) -> None:
    plant.app.set_group("office", enabled=False)  # so that it stays queued
    go(visitor, "/manifests/report")
    page.get_by_role("link", name="Trigger").click()
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    expect(page.locator("#crumbs")).to_contain_text("Work queue")
    expect(page.locator("#nav [aria-current=page]")).to_have_text("Work queue")


def test_filters_are_folded_on_a_phone(visitor: Visitor, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    go(visitor, "/executions?state=failed")
    expect(page.get_by_label("Source")).to_be_hidden()
    expect(page.locator(".fold-label")).to_contain_text("1")
    page.locator(".fold-label").click()
    page.get_by_label("Source").select_option("schedule")
    expect(page.locator(".fold-label")).to_contain_text("2")
    expect(page.get_by_label("Source")).to_be_visible()  # it stays unfolded


def test_what_the_form_refuses_is_said_at_the_field(
    visitor: Visitor, page: Page, plant: Plant
) -> None:
    go(visitor, "/manifests/parcel")
    page.get_by_role("link", name="Trigger").click()
    form = page.get_by_role("dialog")
    form.get_by_label("address").fill("x")
    visitor.expected = ("422",)
    form.get_by_role("button", name="Trigger").click()
    expect(page.get_by_text("at least 3").first).to_be_visible()
    assert plant.events.named("execution.started", external_id="parcel") == []


def test_a_run_is_cancelled(visitor: Visitor, page: Page, plant: Plant) -> None:
    plant.app.trigger("parcel")
    [started] = plant.events.wait_for("execution.started", external_id="parcel")
    go(visitor, f"/executions/{started.fields['execution_id']}")
    page.get_by_role("button", name="Cancel").click()
    confirm(page, "Cancel it")
    expect(page.locator("#execution")).to_have_attribute("data-state", "cancelled")
    expect(page.get_by_role("link", name="Run again")).to_be_visible()


def test_dead_letters_are_resolved_in_batch(visitor: Visitor, page: Page, plant: Plant) -> None:
    plant.events.wait_for("manifest.dead_lettered", 3)
    go(visitor, "/dead-letters")
    rows = page.locator("#letters tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_label("Tick belt-0").check()
    page.get_by_label("Tick belt-1").check()
    page.get_by_label("Note").fill("the belt is new")
    page.get_by_role("button", name="Acknowledge").click()
    confirm(page, "Acknowledge")
    expect(rows).to_have_count(1)
    page.get_by_label("Tick all").check()
    page.get_by_role("button", name="Requeue").click()
    plant.events.wait_for("execution.started", 2, external_id="belt-2")  # and not the others
    assert len(plant.events.named("execution.started", external_id="belt-0")) == 1


def test_who_may_only_read_is_refused(chromium: Browser, plant: Plant) -> None:
    token = plant.app.tokens.create("rita", Scope.READ, created_by="ada").text
    with chromium.new_context(base_url=plant.dashboard.address) as context:
        visitor = Visitor(context.new_page(), plant.host, expected=("401", "403"))
        page = visitor.page
        page.goto("/manifests/parcel")
        expect(page).to_have_url(re.compile("/login"))
        page.get_by_label("Token").fill("hw_wrong_wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="parcel", level=1)).to_be_visible()
        assert visitor.barriers() == []
        expect(page.get_by_role("link", name="Trigger")).to_have_count(0)
        page.goto("/manifests/parcel/trigger")
        expect(page.get_by_text("scope operate")).to_be_visible()
        assert visitor.complaints == []
    assert plant.events.named("execution.started", external_id="parcel") == []


PAGES = [
    "/",
    "/manifests",
    "/manifests/parcel",
    "/manifests/parcel/trigger",
    "/groups",
    "/groups/presses",
    "/graph",
    "/graph?view=manifests",
    "/timeline",
    "/executions",
    "/executions/1",
    "/queue",
    "/dead-letters",
    "/dead-letters/1",
    "/servers",
    "/azolla",
    "/settings",
    "/audit",
    "/nowhere",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_is_for_everybody(
    chromium: Browser, plant: Plant, scheme: str, width: int
) -> None:
    plant.events.wait_for("manifest.dead_lettered", 3)
    with chromium.new_context(
        base_url=plant.dashboard.address,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 800},
    ) as context:
        visitor = Visitor(context.new_page(), plant.host, expected=("404",))
        visitor.page.goto(plant.dashboard.entrance)
        for path in PAGES:
            go(visitor, path)
            wide = visitor.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} wide on a screen of {width}"
        assert visitor.complaints == []
