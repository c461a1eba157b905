"""The skeleton of the web application: what is public, what is not, and how errors look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi import FastAPI, Request

from headway import Headway
from headway.errors import DefinitionError, ManifestNotFound
from headway.store.engine import Store
from headway.web.app import build_app, every_route
from headway.web.assets import assets
from headway.web.context import identity, surface
from headway.web.rendering import page
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.access import Access
from headway.web.security.identity import Identity
from tests.federation.sites import opened
from tests.web.site import Site, listening

READER = Identity("rita", {Scope.READ})


def known(request: Request) -> Identity | None:
    return READER if request.headers.get("x-known") else None


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with opened(sqlite_url) as store:
        yield store


@pytest.fixture
def app(store: Store) -> FastAPI:
    return build_app(Headway("shop"), store, Access(known))


def trying(app: FastAPI) -> None:
    router = ScopedRouter(prefix="/tried")

    @router.get("/names/{name:name}/more", scope=Scope.READ)
    def named(request: Request, name: str) -> dict[str, str]:
        return {"name": name, "who": identity(request).name, "app": surface(request).app.name}

    @router.post("/admin", scope=Scope.ADMIN)
    def admin() -> None:
        raise AssertionError("nobody here may do this")

    @router.get("/raises/{kind}", scope=Scope.READ)
    def raises(kind: str) -> None:
        errors = {
            "missing": ManifestNotFound("load<script>"),
            "wrong": DefinitionError("cap = -1: must be at least 1"),
            "odd": RuntimeError("the password is canary"),
        }
        raise errors[kind]

    app.include_router(router.inner)
    app.include_router(router.inner, prefix="/api/v1")


@pytest.fixture
def site(app: FastAPI) -> Iterator[Site]:
    trying(app)
    with listening(app) as site:
        yield site


def test_every_route_declares_a_scope_and_few_are_public() -> None:
    public = {path for path, route in every_route() if route.scope is Scope.PUBLIC}
    assert public == {
        "/static/{version}/{name:path}",
        "/healthz",
        "/readyz",
        "/login",
    }  # and nothing else


def test_a_router_has_no_way_to_declare_a_route_without_a_scope() -> None:
    router = ScopedRouter()
    with pytest.raises(TypeError):
        router.get("/open")  # type: ignore[call-arg]
    router.inner.get("/open")(lambda: None)
    with pytest.raises(TypeError, match="has no scope"):
        list(router.declared())


@pytest.mark.parametrize("path", ["/tried/names/x/more", "/nothing", "/", "/tried/raises/odd"])
def test_strangers_are_sent_to_the_login_page_whatever_they_ask_for(site: Site, path: str) -> None:
    sent = site.get(path)
    asked = "" if path == "/" else f"?next={quote(path, safe='')}"
    assert (sent.status, sent.headers["location"]) == (303, f"/login{asked}")
    assert site.get("/login").status == 200


@pytest.mark.parametrize("path", ["/api/v1/tried/names/x/more", "/api/v1/nothing", "/api"])
def test_programs_without_a_token_get_401_as_a_problem(site: Site, path: str) -> None:
    refused = site.get(path)
    assert (refused.status, refused.headers["content-type"]) == (401, "application/problem+json")
    assert refused.json()["detail"] == "log in, or send a token"


def test_a_fragment_asked_for_by_a_stranger_moves_the_whole_page(site: Site) -> None:
    refused = site.get("/tried/names/x/more", hx_request="true")
    assert (refused.status, refused.headers["hx-redirect"]) == (401, "/login")


def test_a_name_keeps_its_slashes(site: Site) -> None:
    answer = site.get("/tried/names/a%2Fb%2fmore%20%F0%9F%9A%80/more", x_known="1")
    assert answer.json() == {"name": "a/b/more 🚀", "who": "rita", "app": "shop"}
    assert site.get("/tried/names/a/b/more", x_known="1").status == 404


def test_a_scope_that_is_missing_is_403_before_the_body_is_looked_at(site: Site) -> None:
    headers = {"x-known": "1", "authorization": "Bearer x", "content-type": "application/json"}
    refused = site.ask("POST", "/api/v1/tried/admin", b"{not json", headers)
    assert refused.status == 403
    assert "admin" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("missing", 404, "no manifest"),
        ("wrong", 422, "must be at least 1"),
        ("odd", 500, "the server's log says what"),
    ],
)
def test_errors_are_told_to_people_and_programs(
    site: Site, kind: str, status: int, told: str
) -> None:
    person = site.get(f"/tried/raises/{kind}", x_known="1")
    program = site.get(f"/api/v1/tried/raises/{kind}", x_known="1")
    assert (person.status, program.status) == (status, status)
    assert "text/html" in person.headers["content-type"]
    assert told in person.text.lower().replace("&#39;", "'")
    assert told in program.json()["detail"].lower()
    assert "<script>" not in person.text
    assert "canary" not in person.text + program.text + str(program.headers)


def test_the_process_is_alive_and_ready(site: Site) -> None:
    assert site.get("/healthz").json() == {"status": "alive"}
    assert site.get("/readyz").json() == {"status": "ready"}


def test_it_is_not_ready_without_its_schema(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'empty.db'}")
    with listening(build_app(Headway(), store, Access())) as site:
        answer = site.get("/readyz")
    store.close()
    assert (answer.status, answer.json()["reasons"]) == (
        503,
        ["the database's schema does not fit"],
    )


def test_files_are_kept_forever_under_their_present_version(site: Site) -> None:
    name = sorted(assets().contents)[0]
    kept = site.get(assets().address(name))
    assert (kept.status, kept.body) == (200, assets().contents[name])
    assert "immutable" in kept.headers["cache-control"]
    assert site.get(f"/static/older/{name}").headers["cache-control"] == "no-cache"
    for odd in ("..%2f..%2fapp.py", "../../app.py", "%00", ""):
        assert site.get(f"/static/{assets().version}/{odd}").status == 404


def test_a_page_the_reader_has_is_not_sent_again(app: FastAPI) -> None:
    router = ScopedRouter()

    @router.get("/again", scope=Scope.READ)
    def again(request: Request) -> object:
        return page(request, "login.html", refused="", next="")

    app.include_router(router.inner)
    with listening(app) as site:
        first = site.get("/again", x_known="1")
        second = site.get("/again", x_known="1", if_none_match=first.headers["etag"])
    assert (second.status, second.body) == (304, b"")
    assert first.headers["cache-control"] == "private, no-cache"
