"""Takes pictures of every page of the demo's dashboard, light and dark, at the desk and on a phone.

.venv/bin/python docs/images/make.py FOLDER            all pages
.venv/bin/python docs/images/make.py FOLDER / /graph   some
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

PAGES = (
    "/",
    "/?span=week",
    "/manifests",
    "/manifests/orders-europe",
    "/manifests/orders-europe/trigger",
    "/manifests/sales-all-shops",
    "/groups",
    "/groups/orders",
    "/graph",
    "/graph?view=manifests",
    "/timeline?span=15m",
    "/executions",
    "/executions/3",
    "/executions/7",
    "/queue",
    "/dead-letters",
    "/dead-letters/1",
    "/servers",
    "/azolla",
    "/settings",
    "/audit",
    "/login",
)
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
SCHEMES = ("light", "dark")
BUSY_SECONDS = 25
# Where the demo is installed is nobody's business.
WITHOUT_FOLDERS = """() => document.querySelectorAll("pre").forEach(one => {
  if (one.textContent.includes("File \\"/"))
    one.textContent = one.textContent.replace(/\\/\\S*\\/(?=headway\\/)/g, "");
})"""
# Small: these are to give an idea of a page, and there are many of them.
SCALE, QUALITY = 0.5, 60
LIVES = "600"


@contextmanager
def demo() -> Iterator[str]:
    """A demo at work; gives the address that logs in."""
    command = [sys.executable, "-m", "headway", "demo", "--for", LIVES]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            found = None
            while found is None:
                line = process.stdout.readline()
                if not line:
                    raise SystemExit("the demo ended before it told its address")
                found = re.search(r"http://\S+token=\S+", line)
            time.sleep(BUSY_SECONDS)
            yield found[0]
        finally:
            process.terminate()


def visit(browser: Browser, size: str, scheme: str, cookies: list[dict[str, object]]) -> Page:
    """A window of this size and scheme, logged in."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=SCALE,
        color_scheme=scheme,
        locale="en-GB",
    )
    context.add_cookies(cookies)
    return context.new_page()


def main(folder: Path, paths: tuple[str, ...]) -> None:
    """Take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with demo() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        first = browser.new_context()
        first.new_page().goto(address)
        cookies, root = first.cookies(), address.partition("/?")[0]
        for size in SIZES:
            for scheme in SCHEMES:
                page = visit(browser, size, scheme, cookies)
                for path in paths:
                    if path == "/login":
                        page.goto("about:blank")  # nothing refreshes itself meanwhile
                        page.context.clear_cookies()
                    page.goto(root + path)
                    page.wait_for_timeout(800)
                    page.evaluate(WITHOUT_FOLDERS)
                    name = re.sub(r"\W+", "-", path).strip("-") or "home"
                    file = folder / f"{name}-{size}-{scheme}.jpg"
                    page.screenshot(path=file, type="jpeg", quality=QUALITY)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), tuple(sys.argv[2:]) or PAGES)
