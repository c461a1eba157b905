"""One HTTP request and its answer, within one deadline and a number of bytes.

The deadline is for everything together, connecting and the last byte included: a peer that sends
one byte a second would outlive any timeout that starts again with each of them. Redirects are not
followed, proxies not asked, nothing is decompressed.
"""

import io
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Received:
    """What came back; the body is at most as long as was allowed."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class NoAnswer(Exception):
    """Nothing that could be used came back; the message says why, in one line."""


class Deadline:
    """The moment by which all has to be over.

    >>> Deadline(timedelta(seconds=-1)).left()
    Traceback (most recent call last):
    TimeoutError: the time is over
    """

    def __init__(self, within: timedelta) -> None:
        self._end = time.monotonic() + within.total_seconds()

    def left(self) -> float:
        """The seconds that are left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is over")
        return left


def exchange(
    method: str,
    url: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    within: timedelta,
    most_bytes: int,
) -> Received:
    """Send a request, and return what came back or raise :class:`NoAnswer`.

    >>> exchange("GET", "http://127.0.0.1:8701", "/azolla/v1/ping", {}, b"",
    ...          within=timedelta(seconds=5), most_bytes=4096)  # doctest: +SKIP
    """
    try:
        with _connected(url, Deadline(within)) as wire:
            received = _exchanged(wire, method, url, path, headers, body, most_bytes)
    except TimeoutError:
        raise NoAnswer(f"did not answer within {within.total_seconds():g} s") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise NoAnswer(f"could not be asked: {reason}") from None
    if len(received.body) > most_bytes:
        raise NoAnswer(f"sent more than {most_bytes} bytes")
    return received


def _exchanged(
    wire: "_Wire",
    method: str,
    url: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    most_bytes: int,
) -> Received:
    parts = urlsplit(url)
    connection = HTTPConnection(str(parts.hostname), parts.port or _port(parts.scheme))
    lent: Any = wire  # http.client needs of a socket only what _Wire has
    connection.sock = lent
    connection.request(method, path, body or None, dict(headers))
    answer = connection.getresponse()
    return Received(answer.status, tuple(answer.getheaders()), answer.read(most_bytes + 1))


def _connected(url: str, deadline: Deadline) -> "_Wire":
    parts = urlsplit(url)
    host, port = str(parts.hostname), parts.port or _port(parts.scheme)
    opened = socket.create_connection((host, port), timeout=deadline.left())
    try:
        if parts.scheme == "https":
            opened.settimeout(deadline.left())
            opened = ssl.create_default_context().wrap_socket(opened, server_hostname=host)
    except BaseException:
        opened.close()
        raise
    return _Wire(opened, deadline)


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


class _Wire:
    """A socket whose every operation ends by the deadline."""

    def __init__(self, opened: socket.socket, deadline: Deadline) -> None:
        self._socket = opened
        self._deadline = deadline

    def __enter__(self) -> "_Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(self._deadline.left())
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reading(self._socket, self._deadline))

    def close(self) -> None:
        """Not yet: http.client closes before it has read the body, and relies on the file."""


class _Reading(io.RawIOBase):
    def __init__(self, opened: socket.socket, deadline: Deadline) -> None:
        self._socket = opened
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._socket.settimeout(self._deadline.left())
        return self._socket.recv_into(buffer)
