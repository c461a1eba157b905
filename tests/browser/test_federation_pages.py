"""An operator comes back: asks all deployments, sees the page appear, and notes what to do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from headway.domain.azolla.artifacts import ResponseStatus
from tests.browser.visitor import Visitor
from tests.federation.azolla import Azolla, answering, objective, pause, refusing
from tests.federation.sites import write_registry
from tests.web.visiting import visiting

PAGES = (
    "/azolla",
    "/azolla/events",
    "/azolla/peers",
    "/azolla/captures",
    "/azolla/objectives",
    "/azolla/pause-states",
    "/servers",
    "/settings",
    "/audit",
)


def build(azolla: Azolla) -> None:
    """What a running headway does; in a thread, for the browser has an event loop in this one."""

    def work() -> None:
        azolla.worker().run_once()
        azolla.execute()

    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(work).result()


@pytest.fixture
def azolla(sqlite_url: str, tmp_path: Path) -> Iterator[Azolla]:
    with Azolla(sqlite_url, azolla_registry=str(write_registry(tmp_path))) as azolla:
        azolla.peers["sales"] = answering(
            objective("sales", urgency=4), pause("sales", "requeue load-orders")
        )
        azolla.peers["patches"] = refusing(ResponseStatus.DENIED, "not in its blueprint")
        yield azolla


@pytest.fixture
def page(azolla: Azolla, chromium: Browser) -> Iterator[Page]:
    with visiting(azolla.app, azolla.store) as somebody:
        address = f"http://127.0.0.1:{somebody.site.port}"
        context = chromium.new_context(
            base_url=address, extra_http_headers={"x-scope": "admin"}, locale="en"
        )
        yield context.new_page()
        context.close()


@pytest.fixture
def visitor(page: Page) -> Iterator[Visitor]:
    page.goto("/azolla")
    visitor = Visitor(page, page.url.split("/")[2])
    yield visitor
    assert visitor.complaints == []


def test_the_page_appears_where_it_was_asked_for(
    azolla: Azolla, page: Page, visitor: Visitor
) -> None:
    expect(page.get_by_text("Nobody has asked yet")).to_be_visible()
    assert visitor.barriers() == []

    page.get_by_role("button", name="Ask all deployments").first.click()
    expect(page.get_by_text("All deployments are being asked")).to_be_visible()
    build(azolla)

    expect(page.get_by_text("sales: requeue load-orders").first).to_be_visible()
    expect(page.get_by_text("denied", exact=True)).to_be_visible()
    assert visitor.barriers() == []


def test_notes_and_objectives_are_made_and_closed(page: Page, visitor: Visitor) -> None:
    page.get_by_role("link", name="Captures", exact=True).click()
    page.get_by_label("What crossed your mind?").fill("orders <b>look</b> low")
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_text("orders <b>look</b> low")).to_be_visible()
    page.get_by_role("button", name="Sorted").click()
    expect(page.get_by_text("Nothing to sort")).to_be_visible()

    page.get_by_role("link", name="Objectives").click()
    page.get_by_label("What is to be reached?").fill("clean the staging tables")
    page.get_by_label("Urgency", exact=True).select_option("3")
    page.get_by_role("button", name="Add it").click()
    mine = page.locator(".objectives > li", has_text="clean the staging tables")
    mine.get_by_text("It waits for something").click()
    mine.get_by_label("What exactly?").fill("which tables may go?")
    mine.get_by_role("button", name="Block it").click()
    expect(mine.get_by_text("blocked", exact=True)).to_be_visible()
    mine.get_by_role("button", name="Resolved").click()
    expect(mine.get_by_text("todo", exact=True)).to_be_visible()
    mine.get_by_role("button", name="Done").click()
    expect(mine).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_of_the_system_has_barriers_or_overflows(
    azolla: Azolla, page: Page, visitor: Visitor, width: int
) -> None:
    operator = azolla.app.operator("ada")
    operator.request_manifest()
    build(azolla)
    operator.azolla.capture("orders look low")
    operator.azolla.block(
        operator.azolla.objective("clean up").objective_id, "USER_INPUT", "which tables?"
    )
    page.set_viewport_size({"width": width, "height": 800})
    for path in PAGES:
        page.goto(path)
        assert visitor.barriers() == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
