"""Tokens over the API: shown once, valid until they end, kept nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from headway.store.tables import idempotency, token
from headway.web.app import build_app
from headway.web.security.access import Access
from tests.builders import Scene
from tests.web.api.deployment import Api
from tests.web.site import Site, listening


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url, virtual_time=False) as scene:
        yield scene
        scene.app.runtime.store.close()


@pytest.fixture
def site(scene: Scene) -> Iterator[Site]:
    access = Access(tokens=scene.app.tokens)
    with listening(build_app(scene.app, scene.store, access)) as site:
        yield site


def test_a_token_is_shown_once_and_opens_what_it_may(scene: Scene, site: Site) -> None:
    first = scene.app.tokens.create("root", "admin", created_by="tests").text
    admin = Api(site, first)
    made = admin.post("/tokens", {"name": "ci", "scope": "read"}, idempotency_key="k")
    assert made.status == 201, made.text
    text = made.json()["text"]
    item = {
        "name": "ci",
        "prefix": text.split("_")[1],
        "scope": "read",
        "created_at": made.json()["created_at"],
        "created_by": "root",
        "expires_at": None,
        "last_used_at": None,
        "revoked_at": None,
    }
    assert made.json() == item | {"text": text}
    assert item in admin.get("/tokens").json()["items"]
    again = admin.post("/tokens", {"name": "ci", "scope": "read"}, idempotency_key="k")
    assert again.json()["text"] is None
    assert again.headers["idempotency-replayed"] == "true"

    ci = Api(site, text)
    assert ci.get("/groups").status == 200
    assert ci.post("/queue", {"workflow": "work"}).status == 403
    assert ci.get("/tokens").status == 403
    assert text not in admin.get("/tokens").text
    with scene.store.reading() as tx:
        kept = [*tx.connection.execute(select(token)), *tx.connection.execute(select(idempotency))]
    assert text not in str(kept)

    revoked = admin.ask("DELETE", "/tokens/ci")
    assert revoked.json()["revoked_at"] is not None
    assert revoked.json().keys() == item.keys()
    assert ci.get("/groups").status == 401
    assert admin.ask("DELETE", "/tokens/ci").status == 404
    actions = [one["action"] for one in admin.get("/audit").json()["items"]]
    assert actions.count("token.create") == 1
    assert actions.count("token.revoke") == 1


def test_a_token_has_a_name_a_scope_and_an_end(scene: Scene, site: Site) -> None:
    admin = Api(site, scene.app.tokens.create("root", "admin", created_by="tests").text)
    for body in (
        {"name": "root"},
        {"name": ""},
        {"name": "x", "scope": "god"},
        {"name": "x", "scope": "public"},
        {"name": "x", "expires_in_seconds": 0},
        {"name": "x", "expires_in_seconds": 1e300},
    ):
        assert admin.post("/tokens", body).status == 422, body
    short = admin.post("/tokens", {"name": "short", "expires_in_seconds": 60})
    assert short.json()["scope"] == "read", "the least, unless more is asked for"
    end = datetime.fromisoformat(short.json()["expires_at"])
    assert end - datetime.fromisoformat(short.json()["created_at"]) == timedelta(seconds=60)
    assert short.json()["created_by"] == "root"
