"""A person with a browser: every page they see is judged, whatever the test is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import ConsoleMessage, Page, Request

CHROMIUM = Path("/usr/bin/chromium")
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
RULES = f"() => axe.run(document, {{runOnly: {LEVELS}}}).then(found => found.violations)"


@dataclass
class Visitor:
    """Somebody at *page*; ``complaints`` are console errors, and requests to any other host.

    What a test expects to fail, an answer of 403 say, is named in ``expected``.
    """

    page: Page
    host: str
    expected: tuple[str, ...] = ()
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        self.page.on("request", self._watch)

    def _hear(self, message: ConsoleMessage) -> None:
        told = f"{message.type}: {message.text} ({message.location.get('url', '')})"
        if message.type in ("error", "warning") and not any(one in told for one in self.expected):
            self.complaints.append(told)

    def _watch(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.netloc != self.host:
            self.complaints.append(f"a request to another host: {request.url}")

    def barriers(self) -> list[str]:
        """What axe-core finds on the page as it is now, at level AA."""
        self.page.evaluate(AXE)
        return [told for one in self.page.evaluate(RULES) for told in _told(one)]


def _told(violation: dict[str, Any]) -> Sequence[str]:
    return [
        f"{violation['id']} ({violation['impact']}): {violation['help']}: {node['html'][:160]}"
        f" {node.get('failureSummary', '')[:200]}"
        for node in violation["nodes"]
    ]
