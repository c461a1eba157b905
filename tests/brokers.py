"""Real brokers, each with a folder and ports of its own on loopback, ended by their process ids."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

RABBITMQ_BIN = Path("/usr/lib/rabbitmq/bin")
START_PATIENCE = 90.0
PAUSE = 0.05


class BrokerUnavailable(Exception):
    """This machine has no such broker."""


class Broker(Protocol):
    """A broker that can be stopped and started again, with all it has kept."""

    url: str

    def start(self) -> None:
        """Start it, and return when it answers."""

    def kill(self) -> None:
        """SIGKILL: nothing is written or said any more."""

    def stop(self) -> None:
        """SIGTERM: whoever is connected is told, and all is written."""


@contextmanager
def running(kind: str) -> Iterator[Broker]:
    """A broker of this kind, gone at the end with everything it wrote."""
    folder = Path(tempfile.mkdtemp(prefix=f"headway-{kind}-"))
    broker: Redis | RabbitMQ | None = None
    try:
        broker = Redis(folder) if kind == "redis" else RabbitMQ(folder)
        broker.start()
        yield broker
    finally:
        if broker is not None:
            broker.close()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await(answers: object, process: subprocess.Popen[bytes], log: Path) -> None:
    assert callable(answers)
    deadline = time.monotonic() + START_PATIENCE
    while not answers():
        assert process.poll() is None, f"it ended: {log.read_text(errors='replace')[-3000:]}"
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
        time.sleep(PAUSE)


def _says(port: int, question: bytes, answer: bytes) -> bool:
    """Whether somebody on this port answers a question so."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.settimeout(2)
        connection.sendall(question)
        return connection.recv(64).startswith(answer)
    return False


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """With the processes it started: each broker leads a group of its own."""
    if process is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ask_to_end(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(START_PATIENCE)


class Redis:
    """Redis that writes every command to its file before it answers."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server", path=f"{os.environ.get('PATH', '')}:/usr/bin")
        if program is None:
            raise BrokerUnavailable("no redis-server; Debian: apt install redis-server")
        self._program = program
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        options = {
            "port": str(self._port),
            "bind": "127.0.0.1",
            "dir": str(self._folder),
            "appendonly": "yes",
            "appendfsync": "no",  # the file outlives the process, and that is all that dies here
            "save": "",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        log = self._folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [self._program, *arguments], stdout=output, stderr=output, process_group=0
            )
        _await(lambda: _says(self._port, b"PING\r\n", b"+PONG"), self._process, log)

    def kill(self) -> None:
        _end(self._process)

    def stop(self) -> None:
        _ask_to_end(self._process)

    def close(self) -> None:
        self.kill()


class RabbitMQ:
    """RabbitMQ under a node name of its own, with an epmd of its own."""

    def __init__(self, folder: Path) -> None:
        epmd = shutil.which("epmd", path=f"{os.environ.get('PATH', '')}:/usr/bin")
        if epmd is None or not (RABBITMQ_BIN / "rabbitmq-server").exists():
            raise BrokerUnavailable("no rabbitmq-server; Debian: apt install rabbitmq-server")
        self._epmd = epmd
        self._folder = folder
        self._port, self._names_port, self._node_port = free_port(), free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._names: subprocess.Popen[bytes] | None = None
        self.url = f"amqp://guest:guest@127.0.0.1:{self._port}//"
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{self._port}\ndisk_free_limit.absolute = 50MB\n"
        )

    def start(self) -> None:
        names = {"ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(self._names_port)}
        environment = {
            "PATH": f"{RABBITMQ_BIN}:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self._folder),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"headway{self._port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(self._folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": str(self._folder / "no-environment"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none"
            ),
            **names,
        }
        if self._names is None:
            self._names = subprocess.Popen(
                [self._epmd, "-address", "127.0.0.1", "-port", str(self._names_port)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        log = self._folder / "output"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [RABBITMQ_BIN / "rabbitmq-server"],
                env=environment,
                stdout=output,
                stderr=output,
                process_group=0,
            )
        # It greets whoever speaks its language with the method connection.start.
        _await(lambda: _says(self._port, b"AMQP\0\0\x09\x01", b"\x01"), self._process, log)

    def kill(self) -> None:
        _end(self._process)

    def stop(self) -> None:
        _ask_to_end(self._process)

    def close(self) -> None:
        self.kill()
        _end(self._names)
