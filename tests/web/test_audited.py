"""Tokens from the database, and what the audit tells of those who came and were refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fastapi import Request

from headway import Headway
from headway.definition.tokens import Tokens
from headway.errors import SettingsError
from headway.history import History
from headway.store.engine import Store
from headway.web import serving
from headway.web.app import build_app
from headway.web.context import operator
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.pace import Pace
from headway.web.serving import Dashboard
from tests.federation.sites import opened
from tests.web.site import Site
from tests.web.test_gate import as_page, cookie_of, form_token, with_routes


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with opened(database_url) as store:
        yield store


@pytest.fixture
def hw(database_url: str) -> Headway:
    return Headway("shop", database_url=database_url)


def serve(hw: Headway, monkeypatch: pytest.MonkeyPatch) -> tuple[Dashboard, Site]:
    router = ScopedRouter()

    @router.post("/groups/{name:name}", scope=Scope.OPERATE)
    def set_group(request: Request, name: str) -> None:
        operator(request).set_group(name, max_active_jobs=2)

    def with_more(*arguments: object, **options: object) -> object:
        made = with_routes(build_app(*arguments, **options))  # type: ignore[arg-type]
        made.include_router(router.inner)
        return made

    monkeypatch.setattr(serving, "build_app", with_more)
    dashboard = Dashboard(hw, hw.open_store(), port=0)
    return dashboard, Site(int(dashboard.address.rpartition(":")[2]))


def audit(store: Store) -> list[tuple[str, str, str]]:
    rows = History(store).audit.page().items
    return [(row.actor, row.action, row.subject) for row in reversed(rows)]


def facts(store: Store) -> list[dict[str, object]]:
    rows = History(store).audit.page().items
    return [json.loads(row.detail or "{}") for row in reversed(rows)]


def test_who_came_what_they_did_and_what_was_refused(
    hw: Headway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Tokens(store).create("rita", "read", created_by="boss").text
    dashboard, site = serve(hw, monkeypatch)
    try:
        assert dashboard.entrance == dashboard.address
        answer = site.ask("POST", "/login", f"token={text}".encode(), as_page(site))
        cookie = cookie_of(answer)
        body = f"csrf_token={form_token(site, cookie)}".encode()
        assert site.ask("POST", "/groups/a%2Fb", body, as_page(site, cookie)).status == 403
        assert site.ask("POST", "/act", b"", as_page(site, cookie)).status == 403
        assert site.ask("POST", "/login", b"token=hw_guessed", as_page(site)).status == 401
        assert site.get("/api/v1/nothing", authorization="Bearer hw_guessed").status == 401
        assert site.get("/api/v1/nothing").status == 401  # of no interest to anybody
        assert site.ask("POST", "/logout", body, as_page(site, cookie)).status == 303
    finally:
        dashboard.stop()
    assert audit(store) == [
        ("rita", "session.login", "dashboard"),
        ("rita", "denied", "POST /groups/a/b"),
        ("rita", "denied", "POST /act"),
        ("anonymous", "denied", "POST /login"),
        ("anonymous", "denied", "GET /api/v1/nothing"),
        ("rita", "session.logout", "dashboard"),
    ]
    here = {"address": "127.0.0.1"}
    missing = "this needs the scope operate, which you do not have"
    assert facts(store) == [
        here | {"with": "a token"},
        here | {"reason": missing},
        here | {"reason": "the form is older than your session; load the page again"},
        here | {"reason": "This token is not known here, or is over."},
        here | {"reason": "log in, or send a token"},
        here,
    ]


def test_who_enters_by_the_printed_address_is_in_the_audit(
    hw: Headway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    dashboard, site = serve(hw, monkeypatch)
    try:
        assert site.get(dashboard.entrance.removeprefix(dashboard.address)).status == 303
    finally:
        dashboard.stop()
    assert audit(store) == [("admin", "session.login", "dashboard")]
    assert facts(store) == [{"address": "127.0.0.1", "with": "the printed address"}]


@pytest.mark.parametrize(
    ("proxies", "address"), [((), "127.0.0.1"), (("127.0.0.1",), "198.51.100.7")]
)
def test_an_address_that_a_trusted_proxy_tells_is_the_one_in_the_audit(
    database_url: str,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    proxies: tuple[str, ...],
    address: str,
) -> None:
    behind = Headway("shop", database_url=database_url, dashboard_trusted_proxies=proxies)
    dashboard, site = serve(behind, monkeypatch)
    try:
        told = {"authorization": "Bearer hw_guessed", "x_forwarded_for": "198.51.100.7"}
        assert site.get("/api/v1/nothing", **told).status == 401
    finally:
        dashboard.stop()
    assert [one["address"] for one in facts(store)] == [address]


def test_of_many_refusals_few_are_in_the_audit(
    hw: Headway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    dashboard, site = serve(hw, monkeypatch)
    dashboard.access.notes = Pace(at_once=3, per_second=0.001)
    try:
        for _ in range(5):
            assert site.get("/api/v1/nothing", authorization="Bearer hw_guessed").status == 401
    finally:
        dashboard.stop()
    assert audit(store) == [("anonymous", "denied", "GET /api/v1/nothing")] * 3


def test_a_revoked_token_ends_its_sessions_and_nothing_keeps_its_text(
    hw: Headway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Tokens(store).create("otto", "operate", created_by="boss").text
    dashboard, site = serve(hw, monkeypatch)
    try:
        answer = site.ask("POST", "/login", f"token={text}".encode(), as_page(site))
        cookie = cookie_of(answer)
        assert site.get("/", cookie=cookie, authorization="").status == 200
        assert site.get("/", authorization=f"Bearer {text}").status == 200
        Tokens(store).revoke("otto")
        assert site.get("/", cookie=cookie).status == 303
        assert site.get("/api/v1/", authorization=f"Bearer {text}").status == 401
    finally:
        dashboard.stop()
    assert text not in str(Tokens(store).all())
    assert text not in answer.headers["set-cookie"]


def test_beyond_loopback_there_must_be_a_token(
    hw: Headway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "is_loopback", lambda host: False)
    with pytest.raises(SettingsError, match="others can reach this address"):
        Dashboard(hw, store, port=0)
    Tokens(store).create("boss", "admin", created_by="boss")
    dashboard, site = serve(hw, monkeypatch)
    try:
        assert "token" not in dashboard.entrance
        assert site.get("/", x_forwarded_for="127.0.0.1").status == 303
    finally:
        dashboard.stop()


def test_it_is_alive_and_says_that_it_is_not_ready_without_its_database(
    hw: Headway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Tokens(store).create("rita", "read", created_by="boss")
    dashboard, site = serve(hw, monkeypatch)
    with store.writing() as tx:
        tx.connection.exec_driver_sql("DROP TABLE headway_schema_version")
    try:
        cookie = f"headway_{site.port}=of.somebody"
        assert site.get("/healthz", cookie=cookie).status == 200
        assert site.get("/readyz", cookie=cookie).status == 503
    finally:
        dashboard.stop()
