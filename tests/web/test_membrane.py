"""The HTTP side of the membrane, on a real socket: what its server allows, and how it ends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headway.federation.registry import RegistryFile
from headway.observe import Event, Observer
from headway.store.engine import Store
from headway.web import connections, membrane
from headway.web.membrane import MembraneApp, MembraneServer
from tests.federation.sites import PING_PATH, asking, opened, write_registry
from tests.web.test_crowded import half_open


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with opened(sqlite_url) as store:
        yield store


@pytest.fixture
def app(store: Store, tmp_path: Path) -> MembraneApp:
    observer = Observer()
    return MembraneApp(store, RegistryFile(write_registry(tmp_path), observer), observer)


def said(server: MembraneServer, request: bytes) -> bytes:
    """All that comes back until the connection ends."""
    parts = urlsplit(server.address)
    with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=20) as wire:
        wire.sendall(request)
        answer = b""
        while piece := wire.recv(4096):
            answer += piece
    return answer


def test_a_stranger_learns_nothing_and_the_connection_ends(app: MembraneApp) -> None:
    server = MembraneServer(app)
    try:
        answer = said(server, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n")
    finally:
        server.stop()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b'{"code":"DENIED"}'
    names = {line.split(b":")[0].lower() for line in head.split(b"\r\n")[1:]}
    assert names == {b"date", b"content-type", b"cache-control", b"connection", b"content-length"}


@pytest.mark.parametrize(
    "request_line",
    [
        b"HEAD /azolla/v1/ping HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"GET /azolla/v1/ping%00%0a HTTP/1.1",
        b"GET http://elsewhere/azolla/v1/ping HTTP/1.1",
        b"TRACE / HTTP/1.1",
        b"GET /\xff HTTP/1.1",
    ],
)
def test_odd_requests_are_refused_without_harm(app: MembraneApp, request_line: bytes) -> None:
    server = MembraneServer(app)
    try:
        answer = said(server, request_line + b"\r\nHost: x\r\n\r\n")
    finally:
        server.stop()
    assert answer.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400"))
    assert b"Traceback" not in answer


@pytest.mark.parametrize(
    ("query", "status"),
    [(b"", b"HTTP/1.1 200"), (b"?x=1", b"HTTP/1.1 403"), (b"?", b"HTTP/1.1 200")],
)
def test_a_query_that_was_not_signed_is_not_passed_over(
    app: MembraneApp, query: bytes, status: bytes
) -> None:
    """The signature is about the address as it was sent; "?" alone is no query."""
    server, request = MembraneServer(app), asking(b"", method="GET", path=PING_PATH)
    sent = "".join(f"{name}: {value}\r\n" for name, value in request.headers).encode()
    try:
        line = b"GET " + PING_PATH.encode() + query + b" HTTP/1.1\r\nHost: x\r\n"
        answer = said(server, line + sent + b"\r\n")
    finally:
        server.stop()
    assert answer.startswith(status)


@pytest.mark.parametrize(
    ("size", "sent", "code"),
    [
        (64 * 1024, 64 * 1024, b"DENIED"),
        (64 * 1024 + 1, 64 * 1024 + 1, b"TOO_LARGE"),
        (10 * 1024 * 1024, 1024 * 1024 + 70_000, b"TOO_LARGE"),
    ],
    ids=["largest", "one more", "endless"],
)
def test_a_body_has_a_largest_size(app: MembraneApp, size: int, sent: int, code: bytes) -> None:
    server = MembraneServer(app)
    head = f"POST /azolla/v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
    try:
        answer = said(server, head.encode() + b"x" * sent)
    finally:
        server.stop()
    assert answer.endswith(b'{"code":"%s"}' % code)


def test_a_body_that_does_not_come_is_given_up(
    app: MembraneApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membrane, "BODY_SECONDS", 0.1)
    server = MembraneServer(app)
    try:
        answer = said(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    finally:
        server.stop()
    assert answer.startswith(b"HTTP/1.1 403") and answer.endswith(b'{"code":"DENIED"}')


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost"])
def test_a_head_that_does_not_come_is_not_waited_for(
    app: MembraneApp, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.1)
    server = MembraneServer(app)
    started = time.monotonic()
    try:
        assert said(server, begun) == b""
    finally:
        server.stop()
    assert time.monotonic() - started < 4


def test_half_open_connections_keep_no_peer_out(app: MembraneApp) -> None:
    server = MembraneServer(app)
    port = urlsplit(server.address).port or 0
    with ExitStack() as crowd:
        for number in range(2, 8):
            half_open(crowd, port, 50, f"127.0.0.{number}")
        answer = said(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    server.stop()
    assert answer.startswith(b"HTTP/1.1 403") and answer.endswith(b'{"code":"DENIED"}')


def test_more_requests_at_once_than_the_limit_are_told_to_come_back(
    app: MembraneApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membrane, "MOST_AT_ONCE", 1)
    server = MembraneServer(app)
    port = urlsplit(server.address).port or 0
    waiting = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 10) as first:
        first.sendall(waiting)
        assert first.recv(100).startswith(b"HTTP/1.1 100"), "its body is awaited now"
        answer = said(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        first.sendall(b"x" * 9)
        assert first.recv(100).startswith(b"HTTP/1.1 403")
    server.stop()


def test_a_request_with_two_lengths_is_refused(app: MembraneApp) -> None:
    server = MembraneServer(app)
    try:
        answer = said(
            server,
            b"POST /azolla/v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        )
    finally:
        server.stop()
    assert answer.startswith(b"HTTP/1.1 400") and answer.endswith(b'{"code":"DENIED"}')
    assert answer.count(b"HTTP/1.1") == 1


def test_an_upgrade_is_refused(app: MembraneApp) -> None:
    server = MembraneServer(app)
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    try:
        answer = said(server, b"GET / HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n")
    finally:
        server.stop()
    assert answer.startswith(b"HTTP/1.1 403")


def test_a_connection_is_over_whatever_happens_on_it(
    app: MembraneApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membrane, "CONNECTION_SECONDS", 0.2)
    server = MembraneServer(app)
    try:
        answer = said(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    finally:
        server.stop()
    assert answer == b"", "not the refusal of a body that took too long"


def test_stopping_frees_the_port_and_says_so(app: MembraneApp) -> None:
    ended = threading.Event()
    server = MembraneServer(app, on_end=ended.set)
    port = urlsplit(server.address).port or 0
    server.stop()
    assert ended.is_set()
    socket.create_server(("127.0.0.1", port)).close()


def test_a_registry_that_is_gone_is_told_and_the_last_one_holds(
    store: Store, tmp_path: Path
) -> None:
    observer = Observer()
    seen: list[Event] = []
    observer.subscribe(seen.append)
    registry = RegistryFile(write_registry(tmp_path), observer)
    server = MembraneServer(MembraneApp(store, registry, observer))
    (tmp_path / "azolla.toml").unlink()
    try:
        answer = said(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    finally:
        server.stop()
    assert answer.endswith(b'{"code":"DENIED"}')
    assert [event.name for event in seen] == ["registry.refused", "membrane.refused"]
