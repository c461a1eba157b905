"""The exchange membrane over HTTP: a server of its own, one request for each connection.

Headers, body and answer have limits of time and size; how many are answered at once is limited too.
The membrane itself decides everything else.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headway.federation.membrane import LARGEST_REQUEST, Answer, Code, Membrane
from headway.federation.registry import RegistryFile
from headway.observe import Observer
from headway.store.engine import Store
from headway.web.connections import (
    BoundedRequests,
    Connections,
    PatientProtocol,
    has_two_lengths,
    patient,
)
from headway.web.server_thread import ServerThread, address_of, listen_on

CONNECTIONS = 5
MOST_AT_ONCE = 64
BODY_SECONDS = 5.0
BAD_REQUEST = 400
CONNECTION_SECONDS = 60.0
STOP_SECONDS = 5
DRAINED = 1024 * 1024


class MembraneApp:
    """The ASGI application; every request is answered by the registry as it is then.

    >>> app = MembraneApp(store, RegistryFile("azolla.toml", observer), observer)  # doctest: +SKIP
    """

    def __init__(self, store: Store, registry: RegistryFile, observer: Observer) -> None:
        self._store = store
        self._registry = registry
        self._observer = observer
        self._limiter = CapacityLimiter(CONNECTIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if has_two_lengths(scope["headers"]):
            answer: Answer | None = replace(Answer.saying(Code.DENIED), status=BAD_REQUEST)
        else:
            answer = await self._answered(Request(scope, receive))
        if answer is not None:
            await _response(answer)(scope, receive, send)

    async def _answered(self, request: Request) -> Answer | None:
        """Return the answer, or None if the peer has gone before its body was read."""
        scope = request.scope
        try:
            body = await _body(request)
        except ClientDisconnect:
            return None
        except TimeoutError:
            return Answer.saying(Code.DENIED)
        work = partial(self._answer, request.method, _path(scope), _headers(scope), body)
        return await to_thread.run_sync(work, limiter=self._limiter)

    def _answer(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> Answer:
        membrane = Membrane(self._store, self._registry.current(), self._observer)
        return membrane.answer(method, path, headers, body)


async def _body(request: Request) -> bytes:
    """The body, or so much of it that it is certainly too large.

    A little of what is too large is read and dropped, so that whoever sends it sees the answer.
    """
    body, size = bytearray(), 0
    async with asyncio.timeout(BODY_SECONDS):
        async for piece in request.stream():
            size += len(piece)
            if len(body) <= LARGEST_REQUEST:
                body += piece
            if size > DRAINED:
                break
    return bytes(body[: LARGEST_REQUEST + 1])


def _path(scope: Scope) -> str:
    """As it was sent, with the query: nothing that is not signed is ever looked at."""
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    return str((scope["raw_path"] + query).decode("latin-1"))


def _headers(scope: Scope) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]


def _response(answer: Answer) -> Response:
    beside = {
        "content-type": "application/json",
        "cache-control": "no-store",
        "connection": "close",
    }
    return Response(answer.body, answer.status, answer.headers | beside)


class _Impatient(PatientProtocol):
    """Ends every connection after a while, even if its answer is being read slowly."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(CONNECTION_SECONDS, transport.abort)


class MembraneServer:
    """Serves the membrane in a thread of this process, from construction to :meth:`stop`.

    >>> server = MembraneServer(app, "127.0.0.1", 8701)      # doctest: +SKIP
    >>> server.address                                       # doctest: +SKIP
    'http://127.0.0.1:8701'
    """

    def __init__(
        self,
        app: MembraneApp,
        host: str = "127.0.0.1",
        port: int = 0,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        listener = listen_on(host, port)
        self.address = address_of(host, listener)
        self._server = ServerThread(
            BoundedRequests(app, MOST_AT_ONCE),
            listener,
            "headway-membrane",
            patient(Connections(), _Impatient),
            None,
            STOP_SECONDS,
            on_end,
        )

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._server.stop()
