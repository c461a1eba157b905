"""Limits of an HTTP server: connections, connections of one address, requests at once.

Called by ``serving`` and ``membrane``. Without them 128 connections on which nothing is sent would
keep everything else out, probes included: uvicorn's own limit counts every open connection.
"""

from collections.abc import Callable, Iterable
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 256
MOST_PER_ADDRESS = 64
MOST_AT_ONCE = 128
# Beside these limits, for probes alone.
PROBE_CONNECTIONS = 16
PROBES_AT_ONCE = 16
HEADER_SECONDS = 5.0
UNREAD_SECONDS = 30.0
PROBES = ("/healthz", "/readyz")
TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-type: text/plain\r\ncontent-length: 20\r\n\r\ntoo many connections"
)


class Connections:
    """The open connections of one server; *is_proxy* names addresses that stand for many clients.

    >>> Connections().admit("192.0.2.1", connection)  # doctest: +SKIP
    True
    """

    def __init__(self, is_proxy: Callable[[str], bool] = lambda address: False) -> None:
        self._is_proxy = is_proxy
        self._open: dict[PatientProtocol, str] = {}
        self._reserve: dict[PatientProtocol, None] = {}  # in the order of their arrival

    def admit(self, address: str, connection: "PatientProtocol") -> bool:
        """Return whether *connection* may stay; the oldest one without a request makes room."""
        own = [one for one, known in self._open.items() if known == address]
        if len(own) >= MOST_PER_ADDRESS and not self._is_proxy(address):
            admitted = _close_waiting(own)
        else:
            admitted = len(self._open) < MOST_CONNECTIONS or _close_waiting(self._open)
        if admitted:
            self._open[connection] = address
        return admitted

    def admit_to_the_reserve(self, connection: "PatientProtocol") -> bool:
        """Return whether *connection* may stay for probes, though there are too many."""
        admitted = len(self._reserve) < PROBE_CONNECTIONS or _close_waiting(self._reserve)
        if admitted:
            self._reserve[connection] = None
        return admitted

    def forget(self, connection: "PatientProtocol") -> None:
        """Count *connection* no more."""
        self._open.pop(connection, None)
        self._reserve.pop(connection, None)

    def __len__(self) -> int:
        return len(self._open) + len(self._reserve)


def _close_waiting(connections: "Iterable[PatientProtocol]") -> bool:
    # Half-open connections come first: a kept connection of a browser has shown that it is used.
    waiting = [one for one in connections if one.is_waiting()]
    oldest = min(waiting, key=lambda one: one.cycle is not None, default=None)
    if oldest is not None:
        oldest.drop()
    return oldest is not None


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with limits of time: for the head of a request, and for reading its answer."""

    limits: Connections
    _pauses = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if self.limits.admit(address, self):
            self._expect_request()
        elif self.limits.admit_to_the_reserve(self):
            self.app = OnlyProbes(self.app)
            self._expect_request()
        else:
            transport.write(TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.limits.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is before and self.is_waiting():
            self._expect_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._pauses += 1
        self.loop.call_later(UNREAD_SECONDS, self._drop_if_unread, self._pauses)

    def is_waiting(self) -> bool:
        """Return whether no request is being answered on this connection."""
        return self.cycle is None or self.cycle.response_complete

    def drop(self) -> None:
        """Close the connection at once."""
        self.limits.forget(self)
        self.transport.abort()

    def _expect_request(self) -> None:
        self.loop.call_later(HEADER_SECONDS, self._close_if_silent, self.cycle)

    def _close_if_silent(self, before: Any) -> None:
        if self.cycle is before and self.is_waiting() and not self.transport.is_closing():
            self.transport.close()

    def _drop_if_unread(self, pause: int) -> None:
        if self._pauses == pause and self.flow.write_paused:
            self.drop()


def patient(
    limits: Connections, protocol: type[PatientProtocol] = PatientProtocol
) -> type[H11Protocol]:
    """Return the protocol of one server, which shares *limits* among its connections.

    >>> patient(Connections()).__name__
    'LimitedProtocol'
    """
    return type("LimitedProtocol", (protocol,), {"limits": limits})


class OnlyProbes:
    """Answers 503 to everything but probes: the application of a connection too many.

    >>> OnlyProbes(app)  # doctest: +SKIP
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._app if _is_probe(scope) else _busy)(scope, receive, send)


class BoundedRequests:
    """Answers 503 while *most* requests are in progress; probes have a reserve beside them.

    >>> BoundedRequests(app)  # doctest: +SKIP
    """

    def __init__(self, app: ASGIApp, most: int | None = None) -> None:
        self._app = app
        self._most = most
        self._running = 0
        self._probing = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _is_probe(scope):
            if self._probing >= PROBES_AT_ONCE:
                await _busy(scope, receive, send)
                return
            self._probing += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._probing -= 1
        elif self._running >= (MOST_AT_ONCE if self._most is None else self._most):
            await _busy(scope, receive, send)
        else:
            self._running += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._running -= 1


def _is_probe(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["path"] in PROBES


def has_two_lengths(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a head announces its body twice, so that servers may read it differently.

    >>> has_two_lengths([(b"content-length", b"4"), (b"transfer-encoding", b"chunked")])
    True
    """
    return {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"retry-after": "5", "connection": "close", "cache-control": "no-store"}
    await PlainTextResponse("too many requests at once", 503, headers)(scope, receive, send)
