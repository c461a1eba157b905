"""A small deployment whose pages are looked at: two groups, one after the other, at work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import Request

from headway import Group, every
from headway.web.app import build_app
from headway.web.routing import Scope
from headway.web.security.access import Access
from headway.web.security.identity import Identity
from tests.builders import Scene
from tests.web.site import Answered, Site, listening

FORM = {"content-type": "application/x-www-form-urlencoded"}
EVERYONE = {
    "ada": Identity("ada", {Scope.READ, Scope.OPERATE}),
    "rita": Identity("rita", {Scope.READ}),
    "alma": Identity("alma", {Scope.ADMIN}),
}


@dataclass
class Pages:
    """The dashboard as somebody sees it."""

    site: Site
    who: str = "ada"

    def get(self, path: str, **headers: str) -> Answered:
        return self.site.get(path, x_who=self.who, **headers)

    def post(self, path: str, fields: Mapping[str, str] | None = None) -> Answered:
        """A form of a page, sent with the token every page has."""
        [token, *_] = re.findall(r'name="csrf_token" value="(\w+)"', self.get("/graph").text)
        body = urlencode({"csrf_token": token, **(fields or {})}).encode()
        own = {"x-who": self.who, "origin": f"http://127.0.0.1:{self.site.port}"}
        return self.site.ask("POST", path, body, FORM | own)


@contextmanager
def pages_of(scene: Scene) -> Iterator[Pages]:
    """The pages of the scene's application, for whoever the header x-who names."""

    def known(request: Request) -> Identity | None:
        return EVERYONE.get(request.headers.get("x-who", ""))

    with listening(build_app(scene.app, scene.store, Access(known))) as site:
        yield Pages(site)
    scene.app.runtime.store.close()


def declare_shop(scene: Scene) -> None:
    """``extract-a`` and ``extract-b`` in a group with a cap of two, ``load`` after the first."""
    extract, load = Group("extract", max_active_jobs=2, priority=7), Group("load")
    scene.app.schedule("work", "extract-b", None, every(hours=1), group=extract)
    chain = scene.app.schedule("work", "extract-a", None, every(hours=1), group=extract)
    chain.include("work", "load", None, group=load)
    scene.apply()
