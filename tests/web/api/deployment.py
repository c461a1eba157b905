"""A small deployment with something of everything, and its API on a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, Field, PlainSerializer, SecretStr

from headway import Group, Item, Run, every
from headway.web.app import build_app
from headway.web.security.access import Access, Known
from headway.web.security.identity import Identity, Scope
from headway.web.security.pace import Pace
from tests.builders import Scene
from tests.web.site import Answered, Site, listening

SECRET = "geheim-canary"
BAD = "bad"
JSON = {"content-type": "application/json"}

Password = Annotated[
    SecretStr, PlainSerializer(lambda secret: secret.get_secret_value(), when_used="json")
]


class Table(BaseModel):
    """What the workflow ``load`` takes."""

    name: str = Field(examples=["users"])
    partition: int = 0
    password: Password = Field(default=SecretStr(SECRET), validate_default=True)


@dataclass
class FixedTokens:
    """Tokens in memory, called by their scope."""

    valid: dict[str, Scope] = field(
        default_factory=lambda: {str(scope): scope for scope in Scope if scope is not Scope.PUBLIC}
    )

    def check(self, token: str) -> Known | None:
        names = list(self.valid)
        return self.still(names.index(token)) if token in names else None

    def still(self, token: int) -> Known | None:
        name = list(self.valid)[token]
        return Known(token, Identity(name, {self.valid[name]}))


@dataclass(frozen=True)
class Api:
    """Whoever asks the API, with a token or without."""

    site: Site
    token: str | None = "operate"
    prefix: str = "/api/v1"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        known = {} if self.token is None else {"authorization": f"Bearer {self.token}"}
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = JSON if body is not None else {}
        return self.site.ask(method, self.prefix + path, sent, {**known, **kind, **(headers or {})})

    def get(self, path: str, **headers: str) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("GET", path, headers=named)

    def post(self, path: str, body: Any = None, **headers: str) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, body, named)

    def patch(self, path: str, body: Any, **headers: str) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("PATCH", path, body, named)


def named(name: str) -> str:
    """A name as it stands in a path."""
    return quote(name, safe="")


def declare(scene: Scene) -> None:
    """Manifests of every kind; those called broken fail."""
    app = scene.app

    @app.workflow(keep_output=True)
    def load(table: Table, run: Run) -> dict[str, int]:
        if table.name == BAD:
            raise ValueError("no rows <script>alert(1)</script>")
        return {"rows": 3}

    loads = Group("loads", max_active_jobs=2, priority=5)
    (
        app.schedule(
            load, "extract-users", Table(name="users"), every(hours=1), group=loads
        ).then_include(load, "load-users", Table(name="users"), group="loads")
    )
    app.schedule(load, "odd/name 100%", Table(name="odd"), group="odd/group")
    app.schedule(load, "off", Table(name="off"), every(hours=1), enabled=False, group="resting")
    broken = [Item(number, Table(name=BAD)) for number in (1, 2, 3)]
    app.schedule_many(load, "broken", broken, every(hours=1), max_retries=1)


@dataclass(frozen=True)
class Deployment:
    """The deployment, and who may ask it what."""

    scene: Scene
    site: Site

    @property
    def read(self) -> Api:
        return Api(self.site, "read")

    @property
    def operate(self) -> Api:
        return Api(self.site, "operate")

    @property
    def admin(self) -> Api:
        return Api(self.site, "admin")

    @property
    def nobody(self) -> Api:
        return Api(self.site, None)


def populate(scene: Scene) -> None:
    """Let some of it complete, some fail, some run and some wait."""
    declare(scene)
    scene.apply()
    scene.cycle()
    scene.manage()
    scene.dispatch()
    scene.run()
    scene.app.trigger("extract-users")
    scene.dispatch()
    scene.claim()
    scene.app.trigger("odd/name 100%")
    scene.app.enqueue("load", Table(name="ad hoc"))


@contextmanager
def deployed(url: str, **access: Any) -> Iterator[Deployment]:
    """The deployment on *url*, populated."""
    with Scene(url, virtual_time=False) as scene:
        let_in = Access(
            **{
                "tokens": FixedTokens(),
                "wrong_tries": Pace(at_once=100_000, per_second=1000),
                "writes": Pace(at_once=100_000, per_second=1000),
                **access,
            }
        )
        made = build_app(scene.app, scene.store, let_in)
        try:
            populate(scene)
            with listening(made) as site:
                yield Deployment(scene, site)
        finally:
            made.state.surface.broadcaster.stop()
            scene.app.runtime.store.close()
