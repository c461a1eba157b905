"""A real Chromium; Debian's, for CI has no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.visitor import CHROMIUM


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a module; each has a profile of its own in it.

    Not for longer: as long as it is there an event loop runs in this thread, and jobs of other
    tests could not run in one of their own.
    """
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM} (Debian: apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()
