"""The dashboard in a browser that runs no script: slower to use, and everything can be done."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from headway.domain.access import Scope
from tests.browser.plant import Plant, running_plant
from tests.browser.visitor import Visitor

SECONDS = 1000
PER_PAGE = 50


@pytest.fixture
def plant(sqlite_url: str) -> Iterator[Plant]:
    with running_plant(sqlite_url) as plant:
        yield plant


@pytest.fixture
def page(chromium: Browser, plant: Plant) -> Iterator[Page]:
    """Somebody who has come to the queue by logging in."""
    token = plant.app.tokens.create("ada", Scope.ADMIN, created_by="bob").text
    with chromium.new_context(
        base_url=plant.dashboard.address,
        java_script_enabled=False,
        viewport={"width": 1280, "height": 900},
    ) as context:
        visitor = Visitor(context.new_page(), plant.host, expected=("422",))
        page = visitor.page
        page.set_default_timeout(30 * SECONDS)
        expect.set_options(timeout=30 * SECONDS)
        page.goto("/queue")
        expect(page).to_have_url(re.compile("/login"))
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_url(re.compile("/queue$"))
        # Whoever runs the scripts marks the page; these tests would show nothing with them.
        expect(page.locator("html.scripted")).to_have_count(0)
        yield page
        assert visitor.complaints == []


def test_every_page_is_reached_and_somebody_logs_out(page: Page) -> None:
    names = page.locator("#nav a").all_inner_texts()
    assert len(names) > 10
    for name in names:
        page.locator("#nav").get_by_role("link", name=name, exact=True).click()
        expect(page.locator("#nav [aria-current=page]")).to_have_text(name)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".needs-script:visible")).to_have_count(0)
    page.locator("summary", has_text="You: ada").click()
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile("/login$"))
    page.goto("/groups")
    expect(page.get_by_label("Token")).to_be_visible()


def test_the_menu_of_a_phone_opens(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("#nav")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.locator("#nav").get_by_role("link", name="Groups", exact=True).click()
    expect(page).to_have_url(re.compile("/groups$"))


def test_a_list_is_filtered_and_paged(page: Page, plant: Plant) -> None:
    plant.app.set_group("office", enabled=False)  # so that it stays queued
    for _ in range(PER_PAGE + 3):
        plant.app.trigger("report")
    page.get_by_label("Group", exact=True).fill("office")
    page.get_by_label("Source").select_option("trigger")
    page.get_by_role("button", name="Filter").click()
    rows = page.locator("#queue tbody tr")
    expect(rows).to_have_count(PER_PAGE)
    expect(page.get_by_label("Group", exact=True)).to_have_value("office")
    page.get_by_role("link", name="Next page").click()
    expect(rows).to_have_count(3)
    page.get_by_role("link", name="First page").click()
    expect(rows).to_have_count(PER_PAGE)
    page.get_by_role("link", name="Clear").click()
    expect(page).to_have_url(re.compile("/queue$"))


def test_a_run_is_triggered_by_form_and_cancelled(page: Page, plant: Plant) -> None:
    page.goto("/manifests/parcel")
    page.get_by_role("link", name="Trigger").click()
    form = page.locator("#trigger-form")
    form.get_by_label("address").fill("x")
    form.get_by_role("button", name="Trigger").click()
    expect(page.get_by_text("at least 3").first).to_be_visible()
    form.get_by_label("address").fill("Hill 7")
    form.get_by_label("weight").fill("12")
    form.get_by_role("button", name="Trigger").click()
    expect(page.locator("#toasts")).to_contain_text("parcel was triggered")
    [started] = plant.events.wait_for("execution.started", external_id="parcel")
    page.goto(f"/executions/{started.fields['execution_id']}")
    expect(page.locator("#execution")).to_contain_text("Hill 7")
    page.get_by_role("button", name="Cancel").click()
    plant.events.wait_for("execution.cancelled", external_id="parcel")
    page.reload()
    expect(page.locator("#execution")).to_have_attribute("data-state", "cancelled")
    page.get_by_role("link", name="Run again").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_cap_is_changed(page: Page) -> None:
    page.goto("/groups/presses")
    page.get_by_label("Cap").fill("-3")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#cap-error")).to_contain_text("at least 1")
    page.get_by_label("Cap").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toasts")).to_contain_text("presses now has a cap of 2")
    expect(page.locator("#numbers")).to_contain_text("of 2")


def test_dead_letters_are_resolved_in_batch(page: Page, plant: Plant) -> None:
    plant.events.wait_for("manifest.dead_lettered", 3)
    page.goto("/dead-letters")
    rows = page.locator("#letters tbody tr")
    expect(rows).to_have_count(3)
    page.get_by_label("Tick belt-0").check()
    page.get_by_label("Tick belt-1").check()
    page.get_by_label("Note").fill("the belt is new")
    page.get_by_role("button", name="Acknowledge").click()
    expect(rows).to_have_count(1)
    page.get_by_label("Tick belt-2").check()
    page.get_by_role("button", name="Requeue").click()
    plant.events.wait_for("execution.started", 2, external_id="belt-2")  # and not the others
    assert len(plant.events.named("execution.started", external_id="belt-0")) == 1
