"""A shop whose every stored text tries to be more than text, run in a sandbox, shown by pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from html import unescape
from typing import Annotated, Literal
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

from headway import Group, Headway, Run, every
from headway.testing import Sandbox
from headway.web.app import build_app
from headway.web.security.access import Access
from headway.web.security.identity import Identity, Scope
from tests.web.site import Answered, Site, listening

PAYLOAD = "<img src=x onerror=alert(1)>'\"{{7*7}}"
TAME = "orders"
NASTY = f"nasty {PAYLOAD}"
FAILING = f"failing {PAYLOAD}"
GROUP = f"group {PAYLOAD}"
WORKFLOW = f"import {PAYLOAD}"
CANARY = "canary-of-a-secret"


class Part(BaseModel):
    """A part of a feed."""

    name: str
    amount: Annotated[int, Field(ge=0)] = 1


class Feed(BaseModel):
    """What a run is given: every kind of field that forms know."""

    title: Annotated[str, Field(description=f"What it is called {PAYLOAD}")]
    rows: Annotated[int, Field(ge=0, le=1000)] = 120
    ratio: float | None = None
    fresh: bool = True
    mode: Literal["full", "delta"] = "full"
    day: date | None = None
    part: Part | None = None
    parts: list[Part] = []
    tables: list[str] = []
    tags: dict[str, int] = {}
    key: Annotated[str, Field(json_schema_extra={"secret": True})] = ""
    logins: Annotated[dict[str, str], Field(json_schema_extra={"format": "password"})] = {}


def build(database_url: str) -> Headway:
    """The application: one manifest that works, one that never does, one that waits."""
    hw = Headway("shop", database_url=database_url, default_retry_delay="1s")

    def extract(feed: Feed, run: Run) -> str:
        run.progress(0.5, f"half {PAYLOAD}")
        return f"done {PAYLOAD}"

    def refuse(feed: Feed) -> None:
        raise ValueError(f"refused {PAYLOAD}")

    work = hw.workflow(WORKFLOW, steps=(extract,), keep_output=True)
    never = hw.workflow("never", steps=(refuse,))
    group = Group(GROUP, max_active_jobs=2)
    feed = Feed(title=f"title {PAYLOAD}", key=CANARY, logins={CANARY: CANARY}, tables=["a"])
    (
        hw.schedule(work, NASTY, feed, every(hours=1), group=group)
        .then_include(work, TAME, Feed(title="tame"), group=group)
        .then_include(work, "after", Feed(title="after"), group="rest")
    )
    hw.schedule(never, FAILING, feed, every(minutes=5), group=group, max_retries=2)
    hw.schedule(work, "asleep", Feed(title="asleep"), every(hours=1), group="rest", enabled=False)
    return hw


@dataclass
class Browser:
    """What somebody at a browser does: looks, and sends the forms of the pages they look at."""

    site: Site
    who: str = "operator"
    cookies: str = ""

    def get(self, path: str, **headers: str) -> Answered:
        return self.site.get(path, x_who=self.who, cookie=self.cookies, **headers)

    def send(self, path: str, fields: object = (), *, seen: str = "/") -> Answered:
        """Send *fields* as a form of the page *seen* would."""
        token = re.search(r'name="csrf_token" value="([^"]*)"', self.get(seen).text)
        assert token
        pairs = list(fields.items()) if isinstance(fields, Mapping) else list(fields)  # type: ignore[call-overload]
        body = urlencode([("csrf_token", token[1]), *pairs])
        return self.site.ask(
            "POST",
            path,
            body.encode(),
            {
                "content-type": "application/x-www-form-urlencoded",
                "x-who": self.who,
                "origin": f"http://127.0.0.1:{self.site.port}",
            },
        )

    def followed(self, answer: Answered) -> Answered:
        """The page an answer leads to, with what is to be said there."""
        assert answer.status == 303, answer.text
        self.cookies = answer.headers.get("set-cookie", "").partition(";")[0]
        try:
            return self.get(answer.headers["location"])
        finally:
            self.cookies = ""


@dataclass
class Shop:
    """The application, its sandbox, and somebody looking at it."""

    hw: Headway
    box: Sandbox
    app: FastAPI
    browser: Browser

    def as_reader(self) -> Browser:
        return Browser(self.browser.site, "reader")

    def entries(self) -> list[int]:
        return [entry.id for entry in self.box.queued()]


@contextmanager
def opened_shop(database_url: str) -> Iterator[Shop]:
    """The shop after its first minutes of work, on a real socket."""
    hw = build(database_url)
    with Sandbox(hw, database_url=database_url) as box:
        box.run_until_idle()
        box.advance(minutes=1)
        app = build_app(hw, box.store, Access(_who))
        with listening(app) as site:
            try:
                yield Shop(hw, box, app, Browser(site))
            finally:
                hw.runtime.store.close()


def _who(request: Request) -> Identity | None:
    scopes = {"reader": Scope.READ, "operator": Scope.OPERATE}
    who = request.headers.get("x-who", "")
    return Identity(f"{who} {PAYLOAD}", {scopes[who]}) if who in scopes else None


def path_of(*names: object) -> str:
    """The path of a page, with names quoted."""
    return "/" + "/".join(quote(str(name), safe="") for name in names)


def toast(answer: Answered) -> str:
    """What a page says once."""
    found = re.search(r'id="toasts".*?<p>(.*?)</p>', answer.text, re.S)
    return unescape(found[1]) if found else ""
