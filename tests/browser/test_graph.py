"""The dependency graph in a browser: moved, zoomed, searched, refreshed, and clicked through."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visitor import Visitor
from tests.builders import Scene
from tests.web.deployment import Pages, declare_shop, pages_of

PAGES = ("/groups", "/groups/extract", "/graph", "/graph?view=manifests", "/timeline")


@pytest.fixture
def scene(sqlite_url: str) -> Iterator[Scene]:
    with Scene(sqlite_url, virtual_time=False) as scene:
        declare_shop(scene)
        yield scene


@pytest.fixture
def site(scene: Scene) -> Iterator[Pages]:
    with pages_of(scene) as pages:
        yield pages


@pytest.fixture
def visitor(chromium: Browser, site: Pages) -> Iterator[Visitor]:
    host = f"127.0.0.1:{site.site.port}"
    with chromium.new_context(
        base_url=f"http://{host}",
        extra_http_headers={"x-who": "ada"},
        viewport={"width": 1280, "height": 800},
    ) as context:
        visitor = Visitor(context.new_page(), host)
        yield visitor
        assert visitor.complaints == []


def seen(page: Page) -> list[float]:
    """The part of the graph that is seen: x, y, width and height."""
    text = page.locator("svg.graph").get_attribute("viewBox") or ""
    return [float(one) for one in text.split()]


def test_zooming_by_button_wheel_and_key_and_back(visitor: Visitor) -> None:
    page = visitor.page
    page.goto("/graph")
    whole = seen(page)
    page.get_by_role("button", name="Zoom in").click()
    closer = seen(page)
    assert closer[2] < whole[2]
    page.locator(".graph-view").hover()
    page.mouse.wheel(0, -400)
    page.wait_for_function(
        "width => document.querySelector('svg.graph').viewBox.baseVal.width < width - 1",
        arg=closer[2],
    )
    page.locator(".graph-view").press("0")
    assert seen(page) == pytest.approx(whole, abs=0.1)


def test_a_drag_moves_the_picture_and_a_click_opens_the_group(visitor: Visitor) -> None:
    page = visitor.page
    page.goto("/graph")
    for _ in range(4):  # what is smaller than its frame stays in the middle of it
        page.get_by_role("button", name="Zoom in").click()
    before = seen(page)
    box = page.locator(".node", has_text="extract").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 30, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 80, box["y"] + 40, steps=4)
    page.mouse.up()
    assert seen(page)[0] < before[0]
    assert page.url.endswith("/graph")
    page.locator(".node", has_text="load").click()
    expect(page).to_have_url(f"http://{visitor.host}/groups/load")


def test_what_is_searched_for_stands_out_with_what_lies_before_and_after(visitor: Visitor) -> None:
    page = visitor.page
    page.goto("/graph?view=manifests")
    field = page.get_by_label("Find in the graph")
    field.fill("extract")
    expect(page.locator("[data-found]")).to_have_text("2 found")
    expect(page.locator(".node.lit")).to_have_count(2)
    field.fill("load")
    field.press("Enter")
    expect(page.locator(".node.lit")).to_have_count(2)
    expect(page.locator(".node.lit").first).to_have_attribute("data-name", "extract-a")
    expect(page.locator(".edge.lit")).to_have_count(1)
    field.press("Escape")
    expect(page.locator(".graph-dimmed")).to_have_count(0)


def test_a_refresh_changes_states_and_moves_nothing(visitor: Visitor, scene: Scene) -> None:
    page = visitor.page
    page.goto("/graph")
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_label("Find in the graph").fill("load")
    before = seen(page)
    scene.manage()
    scene.dispatch()
    expect(page.locator(".node.is-running")).to_have_attribute("data-name", "extract")
    assert seen(page) == before
    expect(page.locator(".node.lit")).to_have_attribute("data-name", "load")


def test_a_new_edge_is_drawn_without_anybody_asking(visitor: Visitor, scene: Scene) -> None:
    page = visitor.page
    page.goto("/graph?view=manifests")
    expect(page.locator(".edge")).to_have_count(1)
    scene.app.runtime.schedule_dependent("work", "report", None, "load")
    expect(page.locator(".edge")).to_have_count(2)


def test_the_place_is_remembered_when_one_comes_back(visitor: Visitor) -> None:
    page = visitor.page
    page.goto("/graph")
    page.get_by_role("button", name="Zoom in").click()
    place = seen(page)
    page.goto("/timeline")
    page.goto("/graph")
    assert seen(page) == pytest.approx(place, abs=0.1)


def test_without_script_it_is_a_picture_with_links(chromium: Browser, site: Pages) -> None:
    with chromium.new_context(
        java_script_enabled=False, extra_http_headers={"x-who": "ada"}
    ) as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{site.site.port}/graph")
        expect(page.get_by_label("Find in the graph")).to_be_hidden()
        page.locator(".node", has_text="load").click()
        assert page.url.endswith("/groups/load")


def test_a_cap_is_changed_and_seen_at_once(visitor: Visitor, scene: Scene) -> None:
    page = visitor.page
    visitor.expected = ("422",)
    page.goto("/groups/extract")
    place = seen(page)
    page.get_by_label("Cap").fill("none")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("must be a whole number of at least 1")).to_be_visible()
    page.get_by_label("Cap").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#numbers")).to_contain_text("of 1")
    expect(page.get_by_text("must be a whole number of at least 1")).to_have_count(0)
    assert scene.history.groups.detail("extract").overview.max_active_jobs == 1
    assert seen(page) == place
    expect(page.locator(".graph-box")).to_have_class(re.compile("graph-moves"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_barrier(visitor: Visitor, scene: Scene, theme: str) -> None:
    worker = Thread(target=scene.cycle)  # this thread has the browser's event loop
    worker.start()
    worker.join()
    scene.app.runtime.trigger("extract-b")
    page = visitor.page
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    for path in PAGES:
        page.goto(path)
        assert visitor.barriers() == [], path
