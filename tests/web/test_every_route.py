"""Every route there is, tried by a stranger, by somebody without the scope and by another site."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from headway import Headway
from headway.web.app import build_app, every_route
from headway.web.paths import FOR_PROGRAMS
from headway.web.routing import Scope
from headway.web.security.access import Access, Known
from headway.web.security.bodies import FORM, JSON
from headway.web.security.identity import Identity
from headway.web.security.pace import Pace
from tests.federation.sites import opened
from tests.web.site import Answered, Site, listening

pytestmark = pytest.mark.gate

ROUTES = [
    (method, path, route.scope)
    for path, route in every_route()
    for method in sorted(route.methods or ())
]
CLOSED = [(method, path) for method, path, scope in ROUTES if scope is not Scope.PUBLIC]
ACTIONS = [(method, path) for method, path in CLOSED if method != "GET"]


class OneReader:
    """One token, which reads."""

    def check(self, token: str) -> Known | None:
        return self.still(1) if token == "reads" else None

    def still(self, token: int) -> Known | None:
        return Known(1, Identity("rita", {Scope.READ}))


@pytest.fixture(scope="module")
def access() -> Access:
    return Access(tokens=OneReader(), writes=Pace(10_000, 10_000))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, access: Access) -> Iterator[Site]:
    url = f"sqlite:///{tmp_path_factory.mktemp('site') / 'headway.db'}"
    with opened(url) as store, listening(build_app(Headway("shop"), store, access)) as site:
        yield site


def filled(path: str) -> str:
    """*path* with something in place of every parameter."""
    return re.sub(r"\{[^}]+\}", "1", path)


def tried(site: Site, method: str, path: str, **headers: str) -> Answered:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if method == "GET":
        return site.ask(method, filled(path), headers=named)
    kind, body = (JSON, b"{}") if path.startswith("/api/") else (FORM, b"a=1")
    return site.ask(method, filled(path), body, {"content-type": kind} | named)


def test_there_are_routes_of_both_kinds() -> None:
    assert len(CLOSED) > 10
    assert len(ACTIONS) > 5


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_a_stranger_gets_no_further(site: Site, method: str, path: str) -> None:
    answer = tried(site, method, path)
    if path.startswith(FOR_PROGRAMS) or method != "GET":
        assert answer.status == 401
    else:
        assert answer.status == 303
        assert answer.headers["location"].startswith("/login")


@pytest.mark.parametrize(("method", "path"), ACTIONS)
def test_a_reader_changes_nothing(site: Site, method: str, path: str) -> None:
    if path == "/logout":
        return  # everybody may go
    answer = tried(site, method, path, authorization="Bearer reads")
    assert answer.status == 403


@pytest.mark.parametrize(("method", "path"), ACTIONS)
def test_another_site_changes_nothing(site: Site, access: Access, method: str, path: str) -> None:
    session = access.sessions.begin(Identity("ada", {Scope.ADMIN}))
    cookie = f"headway_{site.port}={access.sessions.cookie(session)}"
    sent = {"cookie": cookie, "x_csrf_token": access.sessions.csrf(f"session {session.id}")}
    for elsewhere in (
        {"origin": "https://evil.com"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {},
    ):
        assert tried(site, method, path, **sent, **elsewhere).status == 403
    own = f"http://127.0.0.1:{site.port}"
    assert tried(site, method, path, cookie=cookie, origin=own).status == 403


@pytest.mark.parametrize(("method", "path"), ACTIONS)
def test_no_action_is_done_by_reading(site: Site, method: str, path: str) -> None:
    also_read = any(
        re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", known), filled(path))
        for got, known, _ in ROUTES
        if got == "GET"
    )
    answer = tried(site, "GET", path, authorization="Bearer reads")
    assert answer.status == 405 or also_read
