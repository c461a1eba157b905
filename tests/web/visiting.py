"""Somebody with a browser on a deployment's pages: what they see, and the forms they send."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request

from headway.definition.app import Headway
from headway.store.engine import Store
from headway.web.app import build_app
from headway.web.routing import Scope
from headway.web.security.access import Access
from headway.web.security.identity import Identity
from tests.web.site import Answered, Site, listening

FORM = "application/x-www-form-urlencoded"
CSRF = re.compile(r'name="csrf_token" value="([^"]*)"')


def by_header(request: Request) -> Identity | None:
    """Whoever says so is somebody, with that scope."""
    scope = request.headers.get("x-scope")
    return Identity(f"the {scope}", {Scope(scope)}) if scope else None


@dataclass(frozen=True)
class Visitor:
    """Somebody who may do what *scope* allows."""

    site: Site
    scope: str = "admin"

    def as_(self, scope: str) -> Visitor:
        return Visitor(self.site, scope)

    def get(self, path: str) -> Answered:
        return self.site.get(path, x_scope=self.scope)

    def text(self, path: str) -> str:
        """What a page that is there says, without its tags."""
        answer = self.get(path)
        assert answer.status == 200, answer.text
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())

    def post(self, path: str, on: str, **fields: str) -> Answered:
        """Send a form that the page *on* has."""
        [*_, token] = CSRF.findall(self.get(on).text) or [""]
        body = urlencode({"csrf_token": token, **fields}).encode()
        origin = f"http://127.0.0.1:{self.site.port}"
        headers = {"content-type": FORM, "origin": origin, "x-scope": self.scope}
        return self.site.ask("POST", path, body, headers)


@contextmanager
def visiting(app: Headway, store: Store) -> Iterator[Visitor]:
    """An admin on the pages of *app*."""
    with listening(build_app(app, store, Access(by_header))) as site:
        yield Visitor(site)
