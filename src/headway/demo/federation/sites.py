"""Deployments as processes on loopback: their folders, keys and registries, started and ended."""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from headway.demo.federation.site import SITE
from headway.errors import HeadwayError

TARGET = "headway.demo.federation.site:hw"
HOST = "127.0.0.1"
KEY_ID = "demo"
ENDING = 10.0

BLUEPRINTS = """
[blueprints.task-management]
cross_azolla_reads = ["pause_state", "objective"]
stores = ["pause_state", "objective", "blocker_ref"]

[blueprints.code-patch]
cross_azolla_reads = []
stores = ["pause_state", "objective", "blocker_ref"]
"""


@dataclass(frozen=True)
class Site:
    """A deployment: its database, where it answers, and which peers may read there."""

    name: str
    database_url: str
    port: int
    readers: frozenset[str] = frozenset()

    @property
    def address(self) -> str:
        """Where its membrane listens."""
        return f"http://{HOST}:{self.port}"


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses at this moment.

    >>> len(free_ports(2))
    2
    """
    held = [socket.create_server((HOST, 0)) for _ in range(count)]
    try:
        return [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()


@dataclass
class Federation:
    """Sites that know one another, in one folder; those that are *started* run.

    >>> with Federation(folder, sites) as federation: federation.start("sales")  # doctest: +SKIP
    """

    folder: Path
    sites: Mapping[str, Site]
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    _logs: list[IO[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for site in self.sites.values():
            self._registry_of(site).write_text(self._registry(site), encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop(self.processes)
        for log in self._logs:
            log.close()

    def start(self, name: str) -> list[subprocess.Popen[str]]:
        """Start a site's two processes and return when its membrane listens."""
        run = self._spawn(name, "run", TARGET)
        serve = self._spawn(name, "azolla", "serve", TARGET, "--port", str(self.sites[name].port))
        assert serve.stdout is not None
        if not serve.stdout.readline():
            raise HeadwayError(f"the membrane of {name} did not start: {self.log_of(name)}")
        return [run, serve]

    def stop(self, processes: Iterable[subprocess.Popen[str]]) -> None:
        """End these processes as a service manager does."""
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def command(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of headway for a site, to its end."""
        return subprocess.run(
            [*_headway(), *arguments],
            env=self._environment(name),
            capture_output=True,
            text=True,
            check=False,
        )

    def log_of(self, name: str) -> str:
        """What a site's processes have said."""
        file = self.folder / f"{name}.log"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def _spawn(self, name: str, *arguments: str) -> "subprocess.Popen[str]":
        log = (self.folder / f"{name}.log").open("a", encoding="utf-8")
        self._logs.append(log)
        serving = "serve" in arguments
        process = subprocess.Popen(
            [*_headway(), *arguments],
            env=self._environment(name),
            stdout=subprocess.PIPE if serving else log,
            stderr=log,
            text=True,
        )
        self.processes.append(process)
        return process

    def _environment(self, name: str) -> dict[str, str]:
        own = {
            SITE: name,
            "HEADWAY_DATABASE_URL": self.sites[name].database_url,
            "HEADWAY_AZOLLA_REGISTRY": str(self._registry_of(self.sites[name])),
        }
        return {**os.environ, **own}

    def _registry_of(self, site: Site) -> Path:
        return self.folder / f"{site.name}.toml"

    def _registry(self, own: Site) -> str:
        lines = ["version = 1", "[azolla]", f'id = "{own.name}"', 'blueprint = "task-management"']
        for peer in self.sites.values():
            if peer.name != own.name:
                granted = "task-management" if peer.name in own.readers else "code-patch"
                key = f'{{ id = "{KEY_ID}", secret_file = "{self._key(own, peer)}" }}'
                lines += [f"[peers.{peer.name}]", f'url = "{peer.address}"']
                lines += [f'blueprint = "{granted}"', f"keys = [{key}]"]
        return "\n".join(lines) + "\n" + BLUEPRINTS

    def _key(self, one: Site, other: Site) -> str:
        """The file with the key the two share."""
        file = self.folder / f"{'-'.join(sorted((one.name, other.name)))}.key"
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(secrets.token_urlsafe(32), encoding="utf-8")
        return file.name


def _headway() -> list[str]:
    return [sys.executable, "-m", "headway"]
