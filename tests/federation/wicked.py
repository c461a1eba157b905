"""Peers that do everything a peer must not do, on real sockets."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from headway.federation.signing import Key, sign_answer
from tests.federation.sites import KEY, NEXT_KEY, OWN, READER

PIECE = b"x" * 65536
NEVER = 600.0


@dataclass
class Visit:
    """One request that came in, and the connection to do something with."""

    wire: socket.socket
    headers: dict[str, str]
    body: dict[str, Any]
    over: threading.Event
    sent: int = 0

    def send(self, data: bytes) -> None:
        self.wire.sendall(data)
        self.sent += len(data)

    def answer(self, body: Any, *, status: int = 200, key: Key = KEY, **signed: Any) -> None:
        """A whole answer; signed for this request unless told otherwise."""
        encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
        how: dict[str, Any] = {"status": status, "body": encoded, "source": OWN, "target": READER}
        asked = signed.pop("asked", self.headers.get("headway-signature", ""))
        headers = sign_answer(key, asked, **how | signed)
        self.send(self.head(status, len(encoded), headers) + encoded)

    def head(self, status: int, length: int, headers: dict[str, str] | None = None) -> bytes:
        lines = [f"HTTP/1.1 {status} x", f"Content-Length: {length}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def response(self, **changes: Any) -> dict[str, Any]:
        """The right answer, as far as nothing is changed."""
        fields = {
            "response_id": "r1",
            "query_id": self.body.get("query_id", ""),
            "target_azolla_id": OWN,
            "status": "OK",
            "results": [],
            "created_at": "2026-11-01T12:00:00Z",
        }
        return fields | changes

    def trickle(self, data: bytes, pause: float = 0.05) -> None:
        """Byte by byte, as long as anybody listens."""
        for position in range(len(data)):
            self.send(data[position : position + 1])
            self.over.wait(pause)

    def flood(self) -> None:
        while not self.over.is_set():
            self.send(PIECE)


Deed = Callable[[Visit], None]

PAUSE = {
    "objective_id": "o1",
    "azolla_id": OWN,
    "reason": "GATE_FAILED",
    "prioritized_actions": ["look"],
    "created_at": "2026-11-01T12:00:00Z",
}


def hangs(visit: Visit) -> None:
    visit.over.wait(NEVER)


def says_goodbye(visit: Visit) -> None:
    return


def trickles_headers(visit: Visit) -> None:
    visit.trickle(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 5_000)


def trickles_the_body(visit: Visit) -> None:
    visit.send(visit.head(200, 5_000))
    visit.trickle(b" " * 5_000)


def continues_for_ever(visit: Visit) -> None:
    while not visit.over.wait(0.01):
        visit.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def redirects(visit: Visit) -> None:
    visit.send(
        b"HTTP/1.1 307 x\r\nLocation: http://127.0.0.1:1/azolla/v1/query\r\n"
        b"Content-Length: 0\r\n\r\n"
    )


def sends_a_gigabyte(visit: Visit) -> None:
    visit.send(visit.head(200, 2**30))
    visit.flood()


def sends_chunks_without_end(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not visit.over.is_set():
        visit.send(b"10000\r\n" + PIECE + b"\r\n")


def sends_headers_without_end(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\n")
    while not visit.over.is_set():
        visit.send(b"X-More: " + PIECE[:8000] + b"\r\n")


def talks_nonsense(visit: Visit) -> None:
    visit.send(b"\x00\xff\r\n\r\nnonsense")


def fails(visit: Visit) -> None:
    visit.answer({"detail": "Traceback"}, status=500)


def signs_nothing(visit: Visit) -> None:
    body = json.dumps(visit.response()).encode()
    visit.send(visit.head(200, len(body)) + body)


def signs_with_another_key(visit: Visit) -> None:
    visit.answer(visit.response(), key=Key(KEY.id, NEXT_KEY.secret))


def answers_another_request(visit: Visit) -> None:
    visit.answer(visit.response(), asked="0" * 64)


def answers_another_query(visit: Visit) -> None:
    visit.answer(visit.response(query_id="another"))


def answers_for_another(visit: Visit) -> None:
    visit.answer(visit.response(target_azolla_id="another"))


def signs_for_another(visit: Visit) -> None:
    visit.answer(visit.response(), source="another")


def alters_what_it_signed(visit: Visit) -> None:
    body = json.dumps(visit.response()).encode()
    headers = sign_answer(
        *(KEY, visit.headers["headway-signature"]),
        status=200,
        body=body + b" ",
        source=OWN,
        target=READER,
    )
    visit.send(visit.head(200, len(body), headers) + body)


def sends_wrong_json(visit: Visit) -> None:
    visit.answer(b'{"response_id": ')


def sends_a_depth_bomb(visit: Visit) -> None:
    visit.answer(b"[" * 1_000_000)


def sends_not_a_number(visit: Visit) -> None:
    visit.answer(b'{"results": [NaN]}')


def sends_a_newer_version(visit: Visit) -> None:
    visit.answer(visit.response(version=2))


def sends_another_type(visit: Visit) -> None:
    visit.answer(visit.response(results=[{"blocker_id": "b1"}]))


def sends_one_field_too_many(visit: Visit) -> None:
    visit.answer(visit.response(results=[PAUSE | {"html": "<script>"}]))


def denies_and_tells(visit: Visit) -> None:
    visit.answer(visit.response(status="DENIED", results=[PAUSE]))


def sends_more_than_asked(visit: Visit) -> None:
    visit.answer(visit.response(results=[PAUSE] * 1_001))


def says_it_is_compressed(visit: Visit) -> None:
    visit.send(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\0\0"
    )


DEEDS: tuple[Deed, ...] = (
    hangs,
    says_goodbye,
    trickles_headers,
    trickles_the_body,
    continues_for_ever,
    redirects,
    sends_a_gigabyte,
    sends_chunks_without_end,
    sends_headers_without_end,
    talks_nonsense,
    fails,
    signs_nothing,
    signs_with_another_key,
    answers_another_request,
    answers_another_query,
    answers_for_another,
    signs_for_another,
    alters_what_it_signed,
    sends_wrong_json,
    sends_a_depth_bomb,
    sends_not_a_number,
    sends_a_newer_version,
    sends_another_type,
    sends_one_field_too_many,
    denies_and_tells,
    sends_more_than_asked,
    says_it_is_compressed,
)


@dataclass
class Wicked:
    """A peer on loopback that does one thing to everybody who asks."""

    url: str
    visits: list[Visit] = field(default_factory=list)


@contextmanager
def peer_that(deed: Deed) -> Iterator[Wicked]:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        wicked = Wicked(f"http://127.0.0.1:{listening.getsockname()[1]}")
        serving = threading.Thread(target=_serve, args=(listening, deed, wicked, over), daemon=True)
        serving.start()
        try:
            yield wicked
        finally:
            over.set()
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            serving.join(timeout=10)
            assert not serving.is_alive()


def _serve(listening: socket.socket, deed: Deed, wicked: Wicked, over: threading.Event) -> None:
    while not over.is_set():
        try:
            wire, _ = listening.accept()
        except OSError:
            return
        with wire, suppress(OSError):
            wire.settimeout(NEVER)
            visit = _received(wire, over)
            wicked.visits.append(visit)
            deed(visit)


def _received(wire: socket.socket, over: threading.Event) -> Visit:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(wire)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:]]
    headers = {name.lower(): value for name, value in lines}
    while len(body) < int(headers.get("content-length", 0)):
        body += _more(wire)
    return Visit(wire, headers, json.loads(body or b"{}"), over)


def _more(wire: socket.socket) -> bytes:
    data = wire.recv(65536)
    if not data:
        raise ConnectionError("nobody is there any more")
    return data


def seconds_since(start: float) -> float:
    return time.monotonic() - start
