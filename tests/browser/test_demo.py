"""The demo as a newcomer meets it: one command, one click on the address it prints."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.visitor import Visitor
from tests.surface.command_line import finish, read_until, start

SECONDS = 1000
ADDRESS = re.compile(r"dashboard: (\S+)")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of the dashboard of a demo that runs until the test is over."""
    process = start(tmp_path, "demo", "--port", "0")
    said = ADDRESS.search(read_until(process.stdout, "dashboard: "))
    assert said is not None
    yield said[1]
    process.send_signal(signal.SIGINT)
    code, _, errors = finish(process)
    assert code in (0, 130), errors


def test_the_demo_is_seen_running_without_a_reload(chromium: Browser, address: str) -> None:
    with chromium.new_context(viewport={"width": 1280, "height": 900}) as context:
        visitor = Visitor(context.new_page(), urlsplit(address).netloc)
        page = visitor.page
        page.set_default_timeout(30 * SECONDS)
        expect.set_options(timeout=30 * SECONDS)

        page.goto(address)
        expect(page.get_by_role("heading", name="Running now")).to_be_visible()
        assert visitor.barriers() == []

        page.get_by_role("navigation").get_by_role("link", name="Executions").first.click()
        newest = page.locator("tbody tr").first
        before = newest.inner_text()
        expect(newest).not_to_have_text(before)  # by itself

        page.get_by_role("navigation").get_by_role("link", name="Graph").first.click()
        page.locator("svg.graph .node", has_text="reports").click()
        expect(page).to_have_url(re.compile("/groups/reports$"))
        assert visitor.barriers() == []
        assert visitor.complaints == []
