"""Too many connections and requests: each address has a limit, and probes are answered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from headway import Headway
from headway.store.engine import Store
from headway.web import connections, serving
from headway.web.connections import BoundedRequests
from headway.web.serving import Dashboard, listen
from tests.builders import eventually
from tests.federation.sites import opened
from tests.web.site import Site
from tests.web.test_serving import site_of

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with opened(sqlite_url) as made:
        yield made


@pytest.fixture
def site(store: Store) -> Iterator[Site]:
    dashboard = Dashboard(Headway("shop"), store, port=0)
    yield site_of(dashboard.entrance)[0]
    dashboard.stop()


def half_open(crowd: ExitStack, port: int, count: int, address: str) -> list[socket.socket]:
    made = []
    for _ in range(count):
        wire = socket.create_connection(("127.0.0.1", port), 10, source_address=(address, 0))
        made.append(crowd.enter_context(wire))
        wire.sendall(HALF)
    return made


def is_open(wire: socket.socket) -> bool:
    """Whether the server waits for the rest of the head."""
    try:
        wire.sendall(b"\r\n")
        return wire.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def test_half_open_connections_keep_nobody_out(site: Site) -> None:
    with ExitStack() as crowd:
        for number in range(2, 8):
            half_open(crowd, site.port, 50, f"127.0.0.{number}")
        assert site.get("/healthz").status == 200
        assert site.get("/readyz").status == 200
        assert site.get("/login").status == 200


def test_half_open_connections_of_one_address_make_room_for_its_next(site: Site) -> None:
    with ExitStack() as crowd:
        other = half_open(crowd, site.port, 1, "127.0.0.9")
        own = half_open(crowd, site.port, connections.MOST_PER_ADDRESS + 10, "127.0.0.8")
        assert is_open(own[-1]) and is_open(other[0])
        assert not any(is_open(wire) for wire in own[:10])


def test_half_open_connections_make_room_before_one_that_was_used(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_PER_ADDRESS", 2)
    used = HTTPConnection("127.0.0.1", site.port, 10, source_address=("127.0.0.8", 0))
    with ExitStack() as crowd, closing(used):

        def answered() -> int:
            used.request("GET", "/healthz")
            with used.getresponse() as answer:
                answer.read()
                return answer.status

        assert answered() == 200
        half, last = half_open(crowd, site.port, 2, "127.0.0.8")
        assert is_open(last)
        assert answered() == 200, "on the connection it has"
        assert not is_open(half)


@pytest.mark.parametrize(
    ("trusted", "status"), [((), b"HTTP/1.1 503"), (("127.0.0.8",), b"HTTP/1.1 200")]
)
def test_an_address_has_no_more_connections_than_its_share(
    store: Store, monkeypatch: pytest.MonkeyPatch, trusted: tuple[str, ...], status: bytes
) -> None:
    monkeypatch.setattr(connections, "MOST_PER_ADDRESS", 2)
    dashboard = Dashboard(Headway("shop", dashboard_trusted_proxies=trusted), store, port=0)
    site = site_of(dashboard.entrance)[0]
    login = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    login += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    with ExitStack() as crowd:
        for _ in range(2):
            wire = socket.create_connection(("127.0.0.1", site.port), 10, ("127.0.0.8", 0))
            # A request whose body is awaited is not closed to make room.
            crowd.enter_context(wire).sendall(login)
            wait_until_begun(site)
        with socket.create_connection(("127.0.0.1", site.port), 10, ("127.0.0.8", 0)) as last:
            last.sendall(b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert last.recv(12) == status
            assert site.get("/healthz").status == 200
    dashboard.stop()


def test_probes_are_answered_beside_all_connections_there_may_be(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(connections, "PROBE_CONNECTIONS", 2)
    login = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    login += b"Content-Type: application/x-www-form-urlencoded\r\n"
    with ExitStack() as crowd:
        for number in (2, 3):
            wire = socket.create_connection(("127.0.0.1", site.port), 10, (f"127.0.0.{number}", 0))
            crowd.enter_context(wire).sendall(login + b"Expect: 100-continue\r\n\r\n")
            assert wire.recv(12) == b"HTTP/1.1 100", "its body is awaited now"
        half_open(crowd, site.port, 5, "127.0.0.4")  # also the reserve makes room
        for probe in ("/healthz", "/readyz"):
            assert site.get(probe).status == 200
        assert site.get("/login").status == 503


def wait_until_begun(site: Site) -> None:
    """What was sent before has been read when something sent later is answered."""
    assert site.get("/healthz").status == 200


def test_probes_have_a_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(connections, "PROBES_AT_ONCE", 1)

    async def scenario() -> list[int]:
        gate, answered = asyncio.Event(), []

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            await gate.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def send(message: Any) -> None:
            if "status" in message:
                answered.append(message["status"])

        async def receive() -> Any:
            raise AssertionError("nothing is read")

        app = BoundedRequests(slow)
        paths = ["/a", "/b", "/c", "/healthz", "/readyz"]
        calls = [app({"type": "http", "path": path}, receive, send) for path in paths]
        tasks = [asyncio.ensure_future(call) for call in calls]
        while len(answered) < 2:
            await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)
        return answered

    assert asyncio.run(scenario()) == [503, 503, 200, 200, 200]


def test_a_request_that_failed_makes_room_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(connections, "PROBES_AT_ONCE", 1)

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError(scope["path"])

    async def nothing(*_: Any) -> Any:
        raise AssertionError("nothing is read or sent")

    async def scenario() -> list[str]:
        app, told = BoundedRequests(broken), []
        for path in ["/a", "/a", "/healthz", "/healthz"]:
            with pytest.raises(RuntimeError) as refused:
                await app({"type": "http", "path": path}, nothing, nothing)
            told.append(str(refused.value))
        return told

    assert asyncio.run(scenario()) == ["/a", "/a", "/healthz", "/healthz"]


def test_a_request_too_many_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_AT_ONCE", 0)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def unused(*_: Any) -> Any:
        raise AssertionError("the request is not handed on")

    asyncio.run(BoundedRequests(unused)({"type": "http", "path": "/a"}, unused, send))
    begun, body = sent
    headers = dict(begun["headers"])
    assert (begun["status"], body["body"]) == (503, b"too many requests at once")
    assert (headers[b"retry-after"], headers[b"connection"]) == (b"5", b"close")
    assert headers[b"cache-control"] == b"no-store"


def test_there_is_an_end_to_connections_on_which_requests_are_answered(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.1)
    login = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    login += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"

    def told() -> bytes:
        answer = b""
        with socket.create_connection(("127.0.0.1", site.port), 10) as last:
            while piece := last.recv(4096):
                answer += piece
        return answer

    monkeypatch.setattr(connections, "PROBE_CONNECTIONS", 0)
    with ExitStack() as crowd:
        for number in (2, 3):
            source = (f"127.0.0.{number}", 0)
            wire = socket.create_connection(("127.0.0.1", site.port), 10, source)
            crowd.enter_context(wire).sendall(login)
            wait_until_begun(site)
        monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
        # The connections that were waited with may still be about to end.
        eventually(lambda: told() != b"")
        head, _, body = told().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503") and b"retry-after: 5" in head
    assert body == b"too many connections"
    eventually(lambda: said_healthy(site))


def said_healthy(site: Site) -> bool:
    """Whether the connections that have ended are counted no more."""
    with suppress(OSError, HTTPException):
        return site.get("/healthz").status == 200
    return False


def test_an_answer_that_is_not_read_is_given_up(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.1)
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.settimeout(15)
        wire.connect(("127.0.0.1", site.port))
        ask = b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with pytest.raises(OSError, match=r"(?i)reset|pipe"):
            while True:
                wire.sendall(ask * 100)


def test_a_request_with_two_lengths_is_refused_and_the_connection_closed(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), 10) as wire:
        wire.sendall(
            b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        answer = b""
        while piece := wire.recv(4096):
            answer += piece
    head = answer.partition(b"\r\n\r\n")[0].lower()
    assert head.startswith(b"http/1.1 400") and b"connection: close" in head
    assert answer.count(b"HTTP/1.1") == 1
    assert b"send Content-Length or Transfer-Encoding, not both" in answer


@pytest.mark.parametrize(
    ("public", "expected"),
    [(None, None), ("http://h.example", None), ("https://h.example", "max-age=31536000")],
)
def test_browsers_are_told_to_stay_with_https(
    store: Store, monkeypatch: pytest.MonkeyPatch, public: str | None, expected: str | None
) -> None:
    listener = listen("127.0.0.1", 0)
    monkeypatch.setattr(serving, "listen", lambda host, port: listener)
    dashboard = Dashboard(Headway("shop", dashboard_public_url=public), store, "127.0.0.1", 0)
    port = listener.getsockname()[1]
    for path in ("/healthz", "/login", "/api/v1/groups"):
        answer = Site(port).get(path)
        assert answer.headers.get("strict-transport-security") == expected, path
    dashboard.stop()
