"""The skeleton of the web application: what is public, what is not, and how errors look."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, quote

import pytest
from fastapi import FastAPI, Request

from headway import Headway
from headway.errors import DefinitionError, ManifestNotFound
from headway.health import Health, Trouble
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


def test_after_the_login_they_are_led_to_what_they_asked_for(site: Site) -> None:
    sent = site.get("/groups/a%20b?x=1&y=%26").headers["location"]
    [(name, asked)] = parse_qsl(sent.partition("?")[2])
    assert (name, asked) == ("next", "/groups/a%20b?x=1&y=%26")


def test_a_form_of_a_stranger_is_answered_by_the_login_page(site: Site) -> None:
    refused = site.ask("POST", "/tried/admin")
    assert (refused.status, "location" in refused.headers) == (401, False)
    assert "You are not logged in, or no longer." in refused.text
    assert 'action="/login"' in refused.text


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
    assert refused.json()["detail"] == "this needs the scope admin, which you do not have"


def test_a_name_that_no_database_holds_is_refused(site: Site) -> None:
    refused = site.get("/api/v1/tried/names/a%00/more", x_known="1")
    assert refused.status == 422
    assert refused.json()["detail"] == (
        "field 'name' = 'a\\x00': must not contain NUL (U+0000 at position 2); "
        "for example 'extract-users'"
    )
    asked = site.get("/api/v1/tried/names/a/more?odd=%00", x_known="1")
    assert asked.json()["detail"].startswith("field 'odd' = '\\x00': must not contain NUL")


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


def test_what_was_not_expected_is_logged_once_with_its_traceback(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    for kind in ("missing", "wrong", "odd"):
        site.get(f"/tried/raises/{kind}", x_known="1")
    [record] = [one for one in caplog.records if one.levelno >= logging.ERROR]
    assert (record.name, record.getMessage()) == ("headway.web", "GET /tried/raises/odd failed")
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the password is canary"


def test_it_is_not_ready_while_its_actors_do_not_work(store: Store) -> None:
    troubles = [Trouble("the lease is over", datetime.now(UTC), "canary")]
    health = Health(tuple(troubles))
    app = build_app(Headway("shop"), store, Access(known), health=lambda: health)
    with listening(app) as site:
        answer = site.get("/readyz")
        assert answer.json() == {"status": "not ready", "reasons": ["the lease is over"]}
        assert answer.status == 503
        assert site.get("/healthz").status == 200
        health = Health()
        assert site.get("/readyz").status == 200


def test_it_is_not_ready_without_its_database() -> None:
    store = Store("postgresql+psycopg://headway@127.0.0.1:9/headway")
    with listening(build_app(Headway(), store, Access())) as site:
        answer = site.get("/readyz")
    store.close()
    assert (answer.status, answer.json()["reasons"]) == (503, ["the database does not answer"])


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
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert site.get(f"/static/older/{name}").headers["cache-control"] == "no-cache"
    for odd in ("..%2f..%2fapp.py", "../../app.py", "%00", ""):
        missing = site.get(f"/static/{assets().version}/{odd}")
        assert (missing.status, missing.headers["cache-control"]) == (404, "no-store")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.js", "text/javascript; charset=utf-8"),
        ("app.css", "text/css; charset=utf-8"),
        ("favicon.svg", "image/svg+xml"),
    ],
)
def test_a_file_says_what_it_is(site: Site, name: str, kind: str) -> None:
    assert site.get(assets().address(name)).headers["content-type"] == kind


def test_a_file_that_is_not_there_has_no_address() -> None:
    with pytest.raises(LookupError, match=r"there is no file 'app\.exe' in static/"):
        assets().address("app.exe")


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
