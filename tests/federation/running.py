"""A deployment that runs: its membrane served by real processes on loopback."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headway.store.engine import Store
from tests.federation.sites import Asking, add_objective, add_pause_state, migrated, write_registry
from tests.surface.command_line import finish, start

APP = """
from headway import Headway

hw = Headway("warehouse", database_url={url!r}, azolla_registry="azolla.toml")
"""
PATIENCE = 20.0
# A Python process with headway, SQLAlchemy and pydantic has about 90 MB; no request may add much.
MOST_MEMORY = 200 * 1024


@dataclass(frozen=True)
class Answered:
    """What came back, and how long it took."""

    status: int
    headers: dict[str, str]
    body: bytes
    seconds: float

    @property
    def told(self) -> Any:
        return json.loads(self.body)

    @property
    def signed(self) -> bool:
        return "headway-signature" in self.headers


@dataclass
class Deployment:
    """One database, and servers that answer for it."""

    folder: Path
    store: Store
    servers: list[subprocess.Popen[str]]
    addresses: list[str]

    def send(self, asking: Asking, server: int = 0) -> Answered:
        method, path, headers, body = asking.parts
        parts = urlsplit(self.addresses[server])
        connection = HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
        begun = time.monotonic()
        try:
            connection.putrequest(method, path)
            for name, value in headers:
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        seconds = time.monotonic() - begun
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answered(answer.status, named, content, seconds)

    def peak_memory(self) -> int:
        """The most kilobytes one of the servers has had."""
        return max(_peak(server.pid) for server in self.servers)


def _peak(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found.group(1))


def serving(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A server for the deployment in *folder*, and where it answers."""
    server = start(folder, "azolla", "serve", "hello:hw", "--port", "0")
    assert server.stdout is not None
    line = server.stdout.readline()
    found = re.search(r"answers for \S+ at (http://\S+:\d+) ", line)
    if not found:
        raise AssertionError(f"no address in {line!r}: {finish(server)}")
    return server, found.group(1)


def write_app(folder: Path, url: str) -> None:
    (folder / "hello.py").write_text(APP.format(url=url))


@contextmanager
def running(folder: Path, url: str, servers: int = 2) -> Iterator[Deployment]:
    """A deployment with a few rows, answered for by so many servers."""
    write_app(folder, url)
    write_registry(folder)
    store = migrated(url)
    for number in range(3):
        add_pause_state(store, number)
    add_objective(store)
    started = [serving(folder) for _ in range(servers)]
    deployment = Deployment(
        folder, store, [server for server, _ in started], [address for _, address in started]
    )
    try:
        yield deployment
        stopped = [_stopped(server) for server in deployment.servers]
    finally:
        store.close()
        for server in deployment.servers:
            if server.poll() is None:
                server.kill()
                server.communicate()
    for code, errors in stopped:
        assert code == 0, errors
        assert "Traceback" not in errors


def _stopped(server: subprocess.Popen[str]) -> tuple[int, str]:
    server.terminate()
    code, _, errors = finish(server)
    return code, errors
