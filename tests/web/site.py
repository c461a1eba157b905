"""A web application on a real socket, and what a browser or a program would say to it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from threading import Thread
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Config, Server


@dataclass(frozen=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Site:
    """Where an application listens."""

    port: int

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answered(answer.status, told, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answered:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("GET", path, headers=named)


@contextmanager
def listening(app: ASGIApp) -> Iterator[Site]:
    """*app* on a port of its own, until the block ends."""
    server = Server(Config(app, log_config=None, lifespan="off", access_log=False))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield Site(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
