"""Nothing on a page moves by itself while jobs run and it is refreshed: measured by the browser.

The bound is what the field calls good: a cumulative layout shift below 0.1. What moves because
somebody has just typed or clicked does not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.plant import Plant, running_plant
from tests.browser.visitor import Visitor

GOOD = 0.1
SECONDS = 1000
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}
REFRESHES = 2

# Shifts are noted from the first paint on, by what the browser itself observes.
WATCH = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) {
    if (!one.hadRecentInput) {
      const moved = one.sources.map((source) => source.node).filter((node) => node);
      const told = (node) => `${node.nodeName}#${node.id ?? ""}.${node.className ?? ""}`;
      window.shifts.push({ value: one.value, moved: moved.map(told) });
    }
  }
}).observe({ type: "layout-shift", buffered: true });
window.refreshed = 0;
document.addEventListener("htmx:afterRequest", () => { window.refreshed += 1; });
"""
# As the page does by itself every two seconds, but without waiting for that.
REFRESH = """() => {
  const regions = document.querySelectorAll("[data-live]");
  const wanted = window.refreshed + regions.length;
  regions.forEach((region) => window.htmx.trigger(region, "live"));
  return wanted;
}"""
# What has been painted by now has been observed once a later task runs.
SETTLED = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(
  () => setTimeout(done, 0))))"""
PUSH_DOWN = """() => {
  const box = document.createElement("div");
  box.className = "panel";
  box.textContent = "what nobody asked for";
  for (let line = 0; line < 30; line += 1) box.append(document.createElement("br"));
  document.getElementById("main").prepend(box);
}"""

PAGES = [
    "/",
    "/?span=week",
    "/manifests",
    "/manifests/clock-a",
    "/manifests/parcel/trigger",
    "/groups",
    "/groups/clock",
    "/graph",
    "/graph?view=manifests",
    "/executions",
    "/executions?manifest=clock-a",
    "/timeline",
    "/queue",
    "/dead-letters",
    "/servers",
    "/azolla",
    "/settings",
    "/audit",
]


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    with running_plant(f"sqlite:///{tmp_path_factory.mktemp('plant') / 'headway.db'}") as plant:
        plant.events.wait_for("manifest.dead_lettered", 3)
        yield plant


@pytest.fixture(scope="module")
def kept(chromium: Browser, plant: Plant) -> Any:
    """The session of somebody who has logged in once, for the contexts of all tests."""
    with chromium.new_context(base_url=plant.dashboard.address) as context:
        context.new_page().goto(plant.dashboard.entrance)
        return context.storage_state()


@pytest.fixture(params=WIDTHS)
def page(
    request: pytest.FixtureRequest, chromium: Browser, plant: Plant, kept: Any
) -> Iterator[Page]:
    width, height = WIDTHS[request.param]
    with chromium.new_context(
        base_url=plant.dashboard.address,
        viewport={"width": width, "height": height},
        storage_state=kept,
    ) as context:
        visitor = Visitor(context.new_page(), plant.host)
        visitor.page.set_default_timeout(30 * SECONDS)
        expect.set_options(timeout=30 * SECONDS)
        visitor.page.add_init_script(WATCH)
        yield visitor.page
        assert visitor.complaints == []


def refresh(page: Page) -> None:
    """Ask for all that is live on the page once more, and wait until it has been shown."""
    wanted = page.evaluate(REFRESH)
    page.wait_for_function("(wanted) => window.refreshed >= wanted", arg=wanted)


def shifts_of(page: Page) -> list[dict[str, Any]]:
    page.evaluate(SETTLED)
    found: list[dict[str, Any]] = page.evaluate("() => window.shifts")
    return found


def total(shifts: list[dict[str, Any]]) -> float:
    return sum(float(one["value"]) for one in shifts)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_stays_where_it_is(page: Page, plant: Plant, path: str) -> None:
    page.goto(path)
    for _ in range(REFRESHES):
        ran = len(plant.events.named("execution.completed"))
        plant.events.wait_for("execution.completed", ran + 1)
        refresh(page)
    found = shifts_of(page)
    assert total(found) < GOOD, json.dumps(found, indent=1)


def test_a_run_that_is_watched_stays_where_it_is(page: Page, plant: Plant) -> None:
    before = len(plant.events.named("execution.started", external_id="parcel"))
    plant.packing.opened.clear()
    plant.posting.opened.clear()
    plant.app.trigger("parcel")
    started = plant.events.wait_for("execution.started", before + 1, external_id="parcel")[-1]
    page.goto(f"/executions/{started.fields['execution_id']}")
    steps = page.locator("#steps tbody tr")
    expect(steps).to_have_count(1)
    plant.packing.opened.set()
    expect(steps).to_have_count(2)
    plant.posting.opened.set()
    expect(page.locator("#execution")).to_have_attribute("data-state", "completed")
    found = shifts_of(page)
    assert total(found) < GOOD, json.dumps(found, indent=1)


def test_a_manifest_whose_job_comes_and_goes_stays_where_it_is(page: Page, plant: Plant) -> None:
    for gate in (plant.packing, plant.posting):
        gate.opened.set()
    page.goto("/manifests/parcel")
    cancel = page.get_by_role("button", name="Cancel")
    for _ in range(4):
        expect(cancel).to_be_disabled()
        started = len(plant.events.named("execution.started", external_id="parcel"))
        ended = len(plant.events.named("execution.completed", external_id="parcel"))
        plant.packing.opened.clear()
        plant.app.trigger("parcel")
        plant.events.wait_for("execution.started", started + 1, external_id="parcel")
        refresh(page)
        expect(cancel).to_be_enabled()
        plant.packing.opened.set()
        plant.events.wait_for("execution.completed", ended + 1, external_id="parcel")
        refresh(page)
    found = shifts_of(page)
    assert total(found) < GOOD, json.dumps(found, indent=1)


def test_what_moves_is_seen(page: Page) -> None:
    """The measure itself: without it all the others would be good whatever happened."""
    page.goto("/manifests")
    before = total(shifts_of(page))
    page.evaluate(PUSH_DOWN)
    page.wait_for_function(
        "(before) => window.shifts.reduce((sum, one) => sum + one.value, 0) > before", arg=before
    )
    assert total(shifts_of(page)) > before + GOOD
