"""Who gets in, how, and what is refused before anything is parsed: tried on a real socket."""

from __future__ import annotations

import asyncio
import socket
import tracemalloc
from collections.abc import Iterator, MutableMapping
from html import unescape
from http.cookies import SimpleCookie
from typing import Any

import pytest
from fastapi import FastAPI, Request

from headway import Headway
from headway.store.engine import Store
from headway.web.app import build_app
from headway.web.context import identity
from headway.web.rendering import page
from headway.web.routing import Scope, ScopedRouter
from headway.web.security import access as access_module
from headway.web.security import bodies
from headway.web.security.access import Access, Known
from headway.web.security.bodies import form
from headway.web.security.identity import Identity
from headway.web.security.pace import Pace
from tests.federation.sites import opened
from tests.web.site import Answered, Site, listening

pytestmark = pytest.mark.gate

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


class SomeTokens:
    """Tokens in memory: what each is called says what it may do."""

    def __init__(self) -> None:
        self.valid = {"reads": Scope.READ, "operates": Scope.OPERATE}
        self.asked = 0

    def check(self, token: str) -> Known | None:
        self.asked += 1
        names = list(self.valid)
        return self.still(names.index(token)) if token in names else None

    def still(self, token: int) -> Known | None:
        names = list(self.valid)
        if token >= len(names):
            return None
        return Known(token, Identity(names[token], {self.valid[names[token]]}))


@pytest.fixture
def tokens() -> SomeTokens:
    return SomeTokens()


@pytest.fixture
def access(tokens: SomeTokens) -> Access:
    return Access(tokens=tokens, allowed_hosts=["headway.example.com"])


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with opened(sqlite_url) as store:
        yield store


def with_routes(app: FastAPI) -> FastAPI:
    router = ScopedRouter()

    @router.get("/", scope=Scope.READ)
    def home(request: Request) -> object:
        return page(request, "login.html", refused=f"{identity(request).name}", next="")

    @router.get("/token-of-forms", scope=Scope.READ)
    def token_of_forms(request: Request) -> dict[str, str]:
        return {"csrf": request.scope["headway.csrf"]}

    @router.post("/act", scope=Scope.OPERATE)
    def act(request: Request) -> dict[str, list[str]]:
        return {"did": form(request).all("what")}

    app.include_router(router.inner)
    app.include_router(router.inner, prefix="/api/v1")
    return app


@pytest.fixture
def site(store: Store, access: Access) -> Iterator[Site]:
    with listening(with_routes(build_app(Headway("shop"), store, access))) as site:
        yield site


def cookie_of(answer: Answered) -> str:
    [(name, morsel)] = SimpleCookie(answer.headers["set-cookie"]).items()
    return f"{name}={morsel.value}"


def as_page(site: Site, cookie: str = "") -> dict[str, str]:
    own = {"origin": f"http://127.0.0.1:{site.port}", "cookie": cookie}
    return FORM | {name: value for name, value in own.items() if value}


def log_in(site: Site, token: str) -> str:
    answer = site.ask("POST", "/login", f"token={token}".encode(), as_page(site))
    assert (answer.status, answer.headers["location"]) == (303, "/")
    return cookie_of(answer)


def form_token(site: Site, cookie: str) -> str:
    return str(site.get("/token-of-forms", cookie=cookie).json()["csrf"])


def test_the_printed_address_works_once_and_leaves_a_cookie(site: Site, access: Access) -> None:
    key = access.start_key()
    first = site.get(f"/?token={key}")
    assert (first.status, first.headers["location"]) == (303, "/")
    assert first.headers["set-cookie"].endswith(
        "; HttpOnly; Max-Age=43200; Path=/; SameSite=strict"
    )
    assert first.headers["set-cookie"].startswith(f"headway_{site.port}=")
    cookie = cookie_of(first)
    assert site.get("/", cookie=cookie).status == 200
    again = site.get(f"/?token={key}")
    assert (again.status, "set-cookie" in again.headers) == (401, False)
    assert "has been used" in again.text
    assert site.get(f"/?token={key}", cookie=cookie).headers["location"] == "/"
    bearer = {"cookie": cookie, "x-csrf-token": form_token(site, cookie)}
    bearer |= {"origin": f"http://127.0.0.1:{site.port}"}
    assert site.ask("POST", "/api/v1/act", b"", bearer).status == 200, "it may do everything"


def test_guessing_the_printed_address_ends_soon(site: Site, access: Access) -> None:
    answers = [site.get(f"/?token=guess-{n}").status for n in range(11)]
    assert answers == [401] * 10 + [429]
    assert site.get(f"/?token={access.start_key()}").status == 429, "not even the right one"


def test_the_key_of_the_printed_address_is_looked_for_on_the_first_page_alone(
    site: Site, access: Access
) -> None:
    key = access.start_key()
    for path in (f"/groups?token={key}", f"/token-of-forms?token={key}"):
        assert "set-cookie" not in site.get(path).headers
    assert site.ask("POST", f"/?token={key}", b"", as_page(site)).status == 401
    assert "set-cookie" in site.get(f"/?what=else&token={key}").headers


def test_a_cookie_is_called_by_the_port_of_the_address(site: Site, access: Access) -> None:
    for host, name in (("localhost:8700", "headway_8700"), ("localhost", "headway")):
        entered = site.get(f"/?token={access.start_key()}", host=host)
        assert cookie_of(entered).partition("=")[0] == name


def test_logging_in_and_out(site: Site) -> None:
    cookie = log_in(site, "reads")
    assert "reads" in site.get("/", cookie=cookie).text
    body = f"csrf_token={form_token(site, cookie)}".encode()
    out = site.ask("POST", "/logout", body, as_page(site, cookie))
    assert (out.status, out.headers["location"]) == (303, "/login")
    forgotten = out.headers["set-cookie"]
    assert forgotten.startswith(f"headway_{site.port}=")
    assert "HttpOnly; Max-Age=0; Path=/; SameSite=strict" in forgotten
    assert "Secure" not in forgotten
    assert site.get("/", cookie=cookie).status == 303  # also for whoever kept the cookie


def test_a_session_ends_with_its_token_and_has_its_scope(site: Site, tokens: SomeTokens) -> None:
    cookie = log_in(site, "operates")
    assert site.get("/", cookie=cookie).status == 200
    del tokens.valid["operates"]
    assert site.get("/", cookie=cookie).status == 303


@pytest.mark.parametrize("change", [lambda c: c[:-1], lambda c: c + "0", lambda c: "x" + c])
def test_a_cookie_that_was_changed_is_none(site: Site, change: object) -> None:
    name, _, value = log_in(site, "reads").partition("=")
    assert callable(change)
    for cookie in (f"{name}={change(value)}", f"{name}=", f"{name}=.", f"{name}=e30=.00"):
        assert site.get("/", cookie=cookie).status == 303


def test_the_next_page_is_one_of_ours(site: Site) -> None:
    for path, led_to in (("/groups%3Fx%3D1", "/groups?x=1"), ("%2F%2Fevil.com", "/")):
        body = f"token=reads&next={path}".encode()
        answer = site.ask("POST", "/login", body, as_page(site))
        assert answer.headers["location"] == led_to


def test_a_token_is_for_programs_and_needs_no_token_of_a_form(site: Site) -> None:
    bearer = {"authorization": "Bearer operates"}
    assert site.ask("POST", "/api/v1/act", b"", bearer).status == 200
    spelt = {"authorization": "bearer  operates "}
    assert site.ask("POST", "/api/v1/act", b"", spelt).status == 200
    assert site.ask("POST", "/api/v1/act", b"", {"authorization": "Bearer reads"}).status == 403
    cookie = log_in(site, "operates")
    both = {"authorization": "Bearer reads", "cookie": cookie}
    assert site.ask("POST", "/api/v1/act", b"", both).status == 403, "the token counts"
    for wrong in ("Bearer none", "Basic cmVhZHM6", "Bearer", "reads"):
        refused = site.get("/api/v1/token-of-forms", authorization=wrong)
        assert refused.status == 401


def test_an_action_needs_its_own_page(site: Site) -> None:
    cookie = log_in(site, "operates")
    body = f"what=a&what=b&csrf_token={form_token(site, cookie)}".encode()
    own = as_page(site, cookie)
    assert site.ask("POST", "/act", body, own).json() == {"did": ["a", "b"]}
    fetch = {"cookie": cookie, "sec-fetch-site": "same-origin", "origin": "null"} | FORM
    assert site.ask("POST", "/act", body, fetch).status == 200
    by_header = {"cookie": cookie, "x-csrf-token": form_token(site, cookie)} | JSON
    by_header |= {"origin": f"http://127.0.0.1:{site.port}"}
    assert site.ask("POST", "/api/v1/act", b"{}", by_header).status == 200
    refused = [
        own | {"origin": "http://evil.com"},
        own | {"origin": "null"},
        own | {"origin": f"http://127.0.0.1:{site.port}.evil.com"},
        own | {"sec-fetch-site": "cross-site"},
        own | {"sec-fetch-site": "same-site"},
        {"cookie": cookie} | FORM,
    ]
    answers = [site.ask("POST", "/act", body, headers) for headers in refused]
    assert [answer.status for answer in answers] == [403] * 6
    assert all("this was sent from another site, and is not done" in one.text for one in answers)


@pytest.mark.parametrize("sent", ["", "csrf_token=", "csrf_token=0000", "csrf_token=%F0%9F%9A%80"])
def test_an_action_needs_the_token_of_its_session(site: Site, sent: str) -> None:
    other = form_token(site, log_in(site, "operates"))
    cookie = log_in(site, "operates")
    for body in (sent, f"csrf_token={other}"):
        answer = site.ask("POST", "/act", body.encode(), as_page(site, cookie))
        assert answer.status == 403
        assert "the form is older than your session; load the page again" in answer.text


def test_reading_an_action_does_nothing(site: Site) -> None:
    cookie = log_in(site, "operates")
    for method in ("GET", "HEAD", "OPTIONS", "TRACE"):
        assert site.ask(method, "/act", headers={"cookie": cookie}).status == 405


def test_logging_in_from_another_site_is_refused(site: Site) -> None:
    elsewhere = FORM | {"origin": "http://evil.com"}
    assert site.ask("POST", "/login", b"token=reads", elsewhere).status == 403


def test_what_a_proxy_is_said_to_have_seen_counts_for_nothing(site: Site) -> None:
    told = {"x_forwarded_for": "127.0.0.1", "forwarded": "for=127.0.0.1", "x_real_ip": "127.0.0.1"}
    assert site.get("/api/v1/token-of-forms", **told).status == 401


@pytest.mark.parametrize(
    "host", ["evil.com", "127.0.0.1.evil.com", "localhost@evil.com", "", "a b", "127.0.0.1:x", "é"]
)
def test_a_host_we_do_not_have_is_400(site: Site, host: str) -> None:
    assert said(site, f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8700", "Headway.example.com."])
def test_a_host_we_have_is_answered(site: Site, host: str) -> None:
    assert said(site, f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "head",
    [
        "GET @evil.com HTTP/1.1\r\nHost: localhost",
        "GET http://evil.com/healthz HTTP/1.1\r\nHost: localhost",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.com",
        "GET /healthz HTTP/1.1",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 100_000,
    ],
)
def test_odd_requests_are_400(site: Site, head: str) -> None:
    assert said(site, f"{head}\r\n\r\n").startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))


def said(site: Site, request: str) -> bytes:
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as wire:
        wire.sendall(request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").encode())
        answer = b""
        while piece := wire.recv(4096):
            answer += piece
    return answer


def test_every_answer_tells_the_browser_what_is_allowed(site: Site) -> None:
    own = ("default", "script", "style", "img", "connect")
    rules = {f"{kind}-src 'self'" for kind in own} | {"form-action 'self'"}
    rules |= {f"{kind}-src 'none'" for kind in ("frame", "worker", "object")}
    rules |= {"base-uri 'none'", "frame-ancestors 'none'"}
    for path in ("/login", "/healthz", "/api/v1/nothing", "/static/x/nothing", "/nothing"):
        headers = site.get(path).headers
        assert set(headers["content-security-policy"].split("; ")) == rules
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["permissions-policy"] == "camera=(), geolocation=(), microphone=()"
        assert "public" not in headers["cache-control"]
    assert site.get("/token-of-forms", authorization="Bearer x").headers["cache-control"] == (
        "no-store"
    )


def test_a_head_of_a_moderate_length_is_read_and_a_longer_one_is_not(site: Site) -> None:
    assert site.get("/healthz", x="y" * 30_000).status == 200
    for path, header in (("/healthz", "y" * 33_000), ("/healthz?x=" + "y" * 16_500, "y" * 16_500)):
        refused = site.get(path, x=header)
        assert (refused.status, refused.text) == (431, "address and headers are too long")
        assert refused.headers["connection"] == "close"


def test_an_unknown_host_is_told_which_setting_lists_the_known_ones(site: Site) -> None:
    refused = site.get("/healthz", host="evil.com")
    assert refused.text == (
        "this host is not served here; dashboard_allowed_hosts lists those that are"
    )
    assert refused.headers["connection"] == "close"
    assert refused.headers["content-type"].startswith("text/plain")


def test_a_websocket_is_closed(store: Store, access: Access) -> None:
    app, sent = build_app(Headway("shop"), store, access), []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    headers = [(b"host", b"localhost")]
    scope = {"type": "websocket", "path": "/", "headers": headers, "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(
    ("path", "kind", "limit"),
    [("/login", FORM, bodies.LARGEST[bodies.FORM]), ("/api/v1/act", JSON, 1024 * 1024)],
)
def test_a_body_over_the_limit_is_413_and_costs_no_memory(
    site: Site, path: str, kind: dict[str, str], limit: int
) -> None:
    headers = kind | {"origin": f"http://127.0.0.1:{site.port}", "authorization": "Bearer operates"}
    site.ask("POST", path, b"x" * 10, headers)
    tracemalloc.start()
    try:
        refused = site.ask("POST", path, b"x" * (limit + 1), headers)
        endless = site_chunks(site, path, headers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.status == 413
    assert endless.startswith(b"HTTP/1.1 413")
    assert peak < 6 * limit


def site_chunks(site: Site, path: str, headers: dict[str, str]) -> bytes:
    """What is said to chunks without an end; sent until the other side has had enough."""
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{told}\r\n"
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as wire:
        wire.sendall(head.encode())
        try:
            for _ in range(2000):  # 128 MB
                wire.sendall(chunk)
            raise AssertionError("everything was taken")
        except OSError:
            pass
        try:
            return wire.recv(4096)
        except OSError:
            return b"HTTP/1.1 413 (gone before it was read)"


def test_a_form_with_too_many_fields_is_413(site: Site) -> None:
    fields = b"&".join([b"a=1"] * 100_000)
    assert site.ask("POST", "/login", fields, as_page(site)).status == 413
    most = b"&".join([b"token=reads", *[b"a=1"] * 999])
    assert site.ask("POST", "/login", most, as_page(site)).status == 303
    refused = site.ask("POST", "/login", most + b"&a=1", as_page(site))
    assert refused.status == 413
    assert "the form has more than 1000 fields" in refused.text


def test_a_body_of_the_largest_size_is_taken(site: Site) -> None:
    bearer = {"authorization": "Bearer operates"}
    largest = bodies.LARGEST[bodies.JSON]
    for kind in ("application/json", "Application/JSON; charset=utf-8", bodies.MERGE):
        sent = bearer | {"content-type": kind, "content-encoding": "identity"}
        assert site.ask("POST", "/api/v1/act", b"x" * largest, sent).status == 200
        refused = site.ask("POST", "/api/v1/act", b"x" * (largest + 1), sent)
        assert refused.status == 413
        assert refused.json()["detail"] == "the body is larger than 1024 KiB"
        assert refused.headers["connection"] == "close"
    whole = b"pad=" + b"x" * (512 * 1024 - 14) + b"&what=last"
    assert site.ask("POST", "/act", whole, bearer | FORM).json() == {"did": ["last"]}
    fields = b"token=" + b"x" * (512 * 1024 - 6)
    assert site.ask("POST", "/login", fields, as_page(site)).status == 401
    assert "larger than 512 KiB" in site.ask("POST", "/login", fields + b"x", as_page(site)).text


def test_a_method_that_reads_takes_no_body(site: Site) -> None:
    sent = JSON | {"authorization": "Bearer operates"}
    refused = site.ask("GET", "/api/v1/token-of-forms", b"{}", sent)
    assert (refused.status, refused.json()["detail"]) == (413, "GET takes no body")


@pytest.mark.parametrize("body", [b"what=%ff", b"what=\xff", "what=é".encode()])
def test_a_form_that_is_not_urlencoded_is_400(site: Site, body: bytes) -> None:
    refused = site.ask("POST", "/login", body, as_page(site))
    assert refused.status == 400
    assert "the form is not urlencoded UTF-8" in refused.text


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"what=a%00b", "field 'what' = 'a\\x00b': must not contain NUL (U+0000 at position 2)"),
        (b"wh%00at=a", "field 'wh\\x00at' = 'a': must not contain NUL (U+0000 at position 3)"),
        (b"token%00=canary", "field 'token\\x00' = …: must not contain NUL"),
    ],
)
def test_a_field_that_no_database_holds_is_named(site: Site, body: bytes, told: str) -> None:
    refused = site.ask("POST", "/login", body, as_page(site))
    assert refused.status == 422
    assert told in unescape(refused.text)
    assert "for example 'wrong day'" in unescape(refused.text)
    assert "canary" not in refused.text


@pytest.mark.parametrize("name", ["input", "input.name", "token"])
def test_what_may_be_secret_in_a_form_is_left_to_those_who_read_it(site: Site, name: str) -> None:
    answer = site.ask("POST", "/login", f"{name}=canary%00".encode(), as_page(site))
    assert answer.status == 401
    assert "canary" not in answer.text


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/login", JSON),
        ("/login", {"content-type": "multipart/form-data; boundary=x"}),
        ("/api/v1/act", FORM),
        ("/api/v1/act", {"content-type": "text/plain"}),
        ("/api/v1/act", JSON | {"content-encoding": "gzip"}),
        ("/api/v1/act", {}),
    ],
)
def test_another_kind_of_body_is_415(site: Site, path: str, headers: dict[str, str]) -> None:
    sent = headers | {"authorization": "Bearer operates"}
    refused = site.ask("POST", path, b"a=1", sent)
    assert refused.status == 415
    if "content-encoding" in headers:
        told = "send the body uncompressed"
    elif path == "/login":
        told = "send the body as application/x-www-form-urlencoded"
    else:
        told = "send the body as application/json or application/merge-patch+json"
    assert told in refused.text


def test_a_body_that_does_not_come_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as wire:
        wire.sendall(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\nto".encode())
        answer = b""
        while piece := wire.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"the body took too long" in answer
    assert b"connection: close" in answer.lower()


def test_guessing_ends_soon(site: Site, tokens: SomeTokens) -> None:
    answers = [site.get("/api/v1/act", authorization=f"Bearer {n}").status for n in range(1000)]
    assert answers[0] == 401
    assert answers.count(429) > 980
    assert tokens.asked < 20
    refused = site.ask("POST", "/login", b"token=reads", as_page(site))
    assert (refused.status, refused.headers["retry-after"].isdigit()) == (429, True)
    assert "too many wrong tokens from this address; wait a moment" in refused.text


def test_who_was_right_before_is_not_kept_out_by_those_who_guess(site: Site) -> None:
    right = {"authorization": "Bearer operates"}
    assert site.ask("POST", "/api/v1/act", b"", right).status == 200
    for n in range(30):
        site.get("/api/v1/act", authorization=f"Bearer {n}")
    assert site.ask("POST", "/api/v1/act", b"", right).status == 200


def test_of_those_who_were_right_the_latest_are_remembered(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "TRUSTED", 1)
    for token in ("operates", "reads"):
        assert site.get("/api/v1/", authorization=f"Bearer {token}").status == 200
    for n in range(11):
        site.get("/api/v1/", authorization=f"Bearer {n}")
    assert site.get("/api/v1/", authorization="Bearer reads").status == 200
    assert site.get("/api/v1/", authorization="Bearer operates").status == 429


def test_a_token_that_is_valid_no_more_is_a_guess_like_any_other(
    site: Site, tokens: SomeTokens
) -> None:
    right = {"authorization": "Bearer operates"}
    assert site.ask("POST", "/api/v1/act", b"", right).status == 200
    del tokens.valid["operates"]
    before = tokens.asked

    answers = [site.ask("POST", "/api/v1/act", b"", right).status for _ in range(50)]

    assert (answers[0], answers[-1]) == (401, 429)
    assert tokens.asked - before < 20


def test_one_token_cannot_flood(store: Store, tokens: SomeTokens) -> None:
    access = Access(tokens=tokens, writes=Pace(at_once=3, per_second=0.01))
    tokens.valid["also"] = Scope.OPERATE
    with listening(with_routes(build_app(Headway("shop"), store, access))) as site:
        flood = [
            site.ask("POST", "/api/v1/act", b"", {"authorization": "Bearer operates"})
            for _ in range(5)
        ]
        other = site.ask("POST", "/api/v1/act", b"", {"authorization": "Bearer also"})
    assert [answer.status for answer in flood] == [200, 200, 200, 429, 429]
    assert int(flood[-1].headers["retry-after"]) > 10
    assert flood[-1].json()["detail"] == "too many changes in a short time; wait a moment"
    assert other.status == 200


def test_cookies_are_secure_where_the_public_address_is(store: Store, tokens: SomeTokens) -> None:
    access = Access(tokens=tokens, public_url="https://headway.example.com")
    with listening(build_app(Headway("shop"), store, access)) as site:
        own = FORM | {"host": "headway.example.com", "origin": "https://headway.example.com"}
        answer = site.ask("POST", "/login", b"token=reads", own)
    assert answer.headers["set-cookie"].startswith("__Host-headway=")
    assert "Secure" in answer.headers["set-cookie"]


def test_a_cookie_is_secure_where_the_browser_came_by_https(site: Site) -> None:
    forwarded = as_page(site) | {"x-forwarded-proto": "https"}
    answer = site.ask("POST", "/login", b"token=reads", forwarded)
    assert answer.headers["set-cookie"].startswith(f"headway_{site.port}=")
    assert answer.headers["set-cookie"].endswith("; SameSite=strict; Secure")


def test_a_secure_cookie_is_forgotten_as_it_was_set(store: Store, tokens: SomeTokens) -> None:
    access = Access(tokens=tokens, public_url="https://headway.example.com")
    own = FORM | {"host": "headway.example.com", "origin": "https://headway.example.com"}
    with listening(with_routes(build_app(Headway("shop"), store, access))) as site:
        cookie = cookie_of(site.ask("POST", "/login", b"token=reads", own))
        page = site.get("/token-of-forms", cookie=cookie, host="headway.example.com")
        body = f"csrf_token={page.json()['csrf']}".encode()
        out = site.ask("POST", "/logout", body, own | {"cookie": cookie})
    assert out.headers["set-cookie"].startswith('__Host-headway="";')
    assert "HttpOnly; Max-Age=0; Path=/; SameSite=strict; Secure" in out.headers["set-cookie"]


@pytest.mark.parametrize(
    ("public_url", "path"), [("https://headway.example.com", "/"), (None, "/inside")]
)
def test_a_mounted_application_keeps_its_cookie_to_itself_unless_its_name_forbids_that(
    store: Store, tokens: SomeTokens, public_url: str | None, path: str
) -> None:
    """Browsers drop a cookie whose name begins with __Host- and whose path is not the root."""
    own = FastAPI()
    access = Access(tokens=tokens, public_url=public_url)
    own.mount("/inside", build_app(Headway("shop"), store, access))
    with listening(own) as site:
        named = {"origin": public_url or f"http://127.0.0.1:{site.port}"}
        named |= {"host": "headway.example.com"} if public_url else {}
        answer = site.ask("POST", "/inside/login", b"token=reads", FORM | named)
    said = [part.strip() for part in answer.headers["set-cookie"].split(";")]
    assert f"Path={path}" in said
    assert ("Secure" in said) is (public_url is not None)


def test_a_mounted_application_answers_to_every_host_unless_some_are_named(store: Store) -> None:
    def known(request: Request) -> Identity | None:
        return None

    for allowed, host, status in (
        ([], "anything.example.com", 200),
        (["headway.example.com"], "anything.example.com", 400),
        (["headway.example.com"], "headway.example.com", 200),
    ):
        access = Access(known, allowed_hosts=allowed)
        with listening(build_app(Headway("shop"), store, access)) as site:
            assert site.get("/healthz", host=host).status == status


def test_an_address_with_many_fields_is_asked_for_like_any_other(site: Site) -> None:
    many = "&".join(f"a{n}=1" for n in range(40))
    assert site.get(f"/?{many}").status == 303
    assert site.get(f"/?{many}", cookie=log_in(site, "reads")).status == 200


def test_a_slash_in_a_name_stays_encoded_on_the_way_to_the_login(site: Site) -> None:
    answer = site.get("/groups/a%2Fb?page=2")
    assert answer.headers["location"] == "/login?next=%2Fgroups%2Fa%252Fb%3Fpage%3D2"
