"""Every bad input of a membrane, sent to a deployment that runs: two servers on one database.

The answer is the stated one, in bounded time and memory, and no table changes but those that
remember requests and answers.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from headway.domain.azolla.artifacts import ResponseStatus, SubstrateQuery
from headway.federation.peers import PeerClient
from headway.federation.registry import RegistryFile
from headway.federation.signing import Key, answers
from headway.observe import Observer
from tests.federation.running import MOST_MEMORY, Deployment, running
from tests.federation.sites import (
    EXECUTOR,
    EXECUTORS_KEY,
    KEY,
    NEXT_KEY,
    OWN,
    PING_PATH,
    READER,
    SECRETS,
    Asking,
    a_query,
    add_pause_state,
    asking,
    counted,
    kept,
    write_registry,
)
from tests.federation.wicked import seconds_since
from tests.pgbouncer import create_schema, drop_schema

QUICK = 30.0  # bounded, on however slow a machine
BOTH = {READER: [KEY], EXECUTOR: [EXECUTORS_KEY]}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("warehouse")
    if request.param == "sqlite":
        with running(folder, f"sqlite:///{folder / 'headway.db'}") as deployment:
            yield deployment
        return
    database = str(request.getfixturevalue("postgres_database"))
    name = f"membrane_{os.urandom(4).hex()}"
    with running(folder, create_schema(database, name)) as deployment:
        yield deployment
    drop_schema(database, name)


@pytest.fixture(autouse=True)
def nothing_changes(deployment: Deployment) -> Iterator[None]:
    before = kept(deployment.store)
    yield
    assert kept(deployment.store) == before
    assert deployment.peak_memory() < MOST_MEMORY
    assert all(server.poll() is None for server in deployment.servers)


def now(**apart: float) -> datetime:
    return datetime.now(UTC) + timedelta(**apart)


def test_a_right_request_is_answered_by_every_server(deployment: Deployment) -> None:
    for server in (0, 1):
        asked = asking()
        answer = deployment.send(asked, server)
        assert (answer.status, answer.told["status"]) == (200, "OK")
        assert len(answer.told["results"]) >= 3
        assert answers(
            *(KEY, dict(asked.headers)["headway-signature"], answer.headers.items()),
            status=200,
            body=answer.body,
            source=OWN,
            target=READER,
        )


def altered(**changes: Any) -> Asking:
    return asking().sent_as(**changes)


def header(name: str, value: str | None) -> Asking:
    return asking().with_header(f"headway-{name}", value)


def from_a_stranger() -> Asking:
    return asking(key=Key(KEY.id, SECRETS["stranger"].encode()))


NOT_TAKEN: dict[str, Callable[[], Asking]] = {
    "unknown source": lambda: asking(source="nobody"),
    "wrong key": from_a_stranger,
    "unknown key id": lambda: asking(key=Key("2020-01", KEY.secret)),
    "another peer's key": lambda: asking(key=EXECUTORS_KEY),
    "a peer that claims to be another": lambda: asking(
        a_query(source_azolla_id=READER), source=READER, key=EXECUTORS_KEY
    ),
    "wrong target": lambda: asking(target="elsewhere"),
    "altered body": lambda: altered(body=json.dumps(a_query()).encode()),
    "altered method": lambda: altered(method="PUT"),
    "altered path": lambda: altered(path=PING_PATH),
    "added parameters": lambda: altered(path="/azolla/v1/query?limit=1"),
    "altered source": lambda: header("source", EXECUTOR),
    "altered target": lambda: header("target", "elsewhere"),
    "altered time": lambda: header("timestamp", str(int(time.time()) + 1)),
    "altered nonce": lambda: header("nonce", "n" * 32),
    "altered key id": lambda: header("key", "2026-12"),
    "altered signature": lambda: header("signature", "0" * 64),
    **{
        f"no {name}": partial(header, name, None)
        for name in ("source", "target", "timestamp", "nonce", "key", "signature")
    },
    "a header twice": lambda: Asking(
        (asked := asking()).request, [*asked.headers, ("headway-nonce", "n" * 32)]
    ),
    "a time that is none": lambda: asking().with_header("headway-timestamp", "yesterday"),
    "nothing signed": lambda: Asking(asking().request, []),
    "a newer version": lambda: asking(path="/azolla/v2/query"),
    "another path": lambda: asking(path="/azolla/v1/events"),
    "a path with tricks": lambda: asking(path="/azolla/v1/../v1/query"),
    "an encoded path": lambda: asking(path="/azolla/v1/quer%79"),
}


@pytest.mark.parametrize("case", NOT_TAKEN)
def test_what_is_not_signed_by_a_peer_for_us_is_denied(deployment: Deployment, case: str) -> None:
    before = counted(deployment.store)
    answer = deployment.send(NOT_TAKEN[case]())
    assert (answer.status, answer.body) == (403, b'{"code":"DENIED"}')
    assert not answer.signed
    assert answer.seconds < QUICK
    assert counted(deployment.store) == before, "a stranger writes nothing at all"


@pytest.mark.parametrize("minutes", [-10, -1.2, 1.2, 10])
def test_a_clock_that_is_off_is_stale(deployment: Deployment, minutes: float) -> None:
    answer = deployment.send(asking(at=now(minutes=minutes)))
    assert (answer.status, answer.body) == (403, b'{"code":"STALE"}')


def test_a_request_sent_again_is_replayed_on_every_server(deployment: Deployment) -> None:
    asked = asking()
    assert deployment.send(asked, 0).status == 200
    for server in (1, 0):
        answer = deployment.send(asked, server)
        assert (answer.status, answer.body) == (403, b'{"code":"REPLAYED"}')


def test_of_many_copies_at_once_one_is_answered(deployment: Deployment) -> None:
    asked = asking()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda server: deployment.send(asked, server % 2), range(8)))
    assert sorted(answer.status for answer in found) == [200] + [403] * 7
    assert {answer.body for answer in found if answer.status == 403} == {b'{"code":"REPLAYED"}'}


DENIED: dict[str, dict[str, Any]] = {
    "unknown type": {"artifact_type": "workorder"},
    "type with tricks": {"artifact_type": "pause_state; DROP TABLE headway_objective"},
    "undeclared type": {"artifact_type": "blocker_ref"},
    "source of somebody else in the body": {"source_azolla_id": EXECUTOR},
    "another target in the body": {"target_azolla_id": "elsewhere"},
    "five thousand ids": {"filter": {"objective_id": [f"o{n}" for n in range(5_000)]}},
    "ten thousand ids": {"filter": {"objective_id": ["o"] * 10_000}},
    "unbounded result": {"filter": {"limit": 10**9}},
    "negative limit": {"filter": {"limit": -1}},
    "write": {"filter": {"update": {"status": "DONE"}}},
    "operator": {"filter": {"objective_id": {"$ne": None}}},
    "statement as a value": {"filter": {"reason": "x'; DELETE FROM headway_objective; --"}},
    "statement as a key": {"filter": {"1=1; DELETE FROM headway_objective": 1}},
    "nested": {"filter": {"objective_id": [["o1"]]}},
}


@pytest.mark.parametrize("case", DENIED)
def test_what_fails_a_check_is_denied_and_signed(deployment: Deployment, case: str) -> None:
    noted = counted(deployment.store)["headway_audit"]
    answer = deployment.send(asking(a_query(**DENIED[case])))
    assert answer.status == 200
    assert (answer.told["status"], answer.told["results"]) == ("DENIED", [])
    assert answer.signed
    assert answer.seconds < QUICK
    assert counted(deployment.store)["headway_audit"] == noted + 1


def test_a_source_whose_blueprint_reads_nothing_is_denied(deployment: Deployment) -> None:
    query = a_query(source_azolla_id=EXECUTOR)
    answer = deployment.send(asking(query, source=EXECUTOR, key=EXECUTORS_KEY))
    assert (answer.status, answer.told["status"], answer.told["results"]) == (200, "DENIED", [])


NO_QUERIES = {
    "nothing": b"",
    "a list": b"[]",
    "depth bomb": b"[" * 60_000,
    "depth bomb of objects": b'{"a":' * 10_000,
    "depth bomb in the filter": json.dumps(a_query())[:-1].encode()
    + b', "filter": '
    + b"[" * 20_000
    + b"]" * 20_000
    + b"}",
    "not a number": b'{"query_id": NaN}',
    "not UTF-8": b'{"query_id": "\xff"}',
    "a key twice": b'{"query_id": "a", "query_id": "b"}',
    "a field of a newer version": json.dumps(a_query(version=2)).encode(),
    "NUL": json.dumps(a_query(query_id="a\0b")).encode(),
    "a lone surrogate": json.dumps(a_query(query_id="\ud800")).encode(),
    "an endless number": b'{"query_id": ' + b"9" * 60_000 + b"}",
}


@pytest.mark.parametrize("case", NO_QUERIES)
def test_a_body_that_is_no_query_is_denied(deployment: Deployment, case: str) -> None:
    answer = deployment.send(asking(NO_QUERIES[case]))
    assert (answer.status, answer.body) == (403, b'{"code":"DENIED"}')
    assert answer.seconds < QUICK


@pytest.mark.parametrize("size", [64 * 1024 + 1, 1024 * 1024])
def test_a_large_body_is_too_large(deployment: Deployment, size: int) -> None:
    answer = deployment.send(asking(b" " * size))
    assert (answer.status, answer.body) == (403, b'{"code":"TOO_LARGE"}')
    assert answer.seconds < QUICK


def connected(deployment: Deployment) -> socket.socket:
    parts = urlsplit(deployment.addresses[0])
    return socket.create_connection((str(parts.hostname), parts.port or 0), timeout=20)


def test_a_body_without_end_is_cut_off(deployment: Deployment) -> None:
    sent, start_at = 0, time.monotonic()
    with connected(deployment) as wire:
        wire.sendall(b"POST /azolla/v1/query HTTP/1.1\r\nHost: x\r\n")
        wire.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            while sent < 2**30:
                wire.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            pass
    assert sent < 64 * 1024 * 1024
    assert seconds_since(start_at) < 15


@pytest.mark.full
@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"POST /azolla/v1/query HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        b"POST /azolla/v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["connects", "headers", "body"],
)
def test_whoever_says_nothing_more_is_let_go(deployment: Deployment, beginning: bytes) -> None:
    start_at = time.monotonic()
    with connected(deployment) as wire:
        wire.sendall(beginning)
        answer = b""
        while piece := wire.recv(4096):
            answer += piece
    assert seconds_since(start_at) < 12
    assert b"Traceback" not in answer
    assert answer == b"" or answer.endswith(b'{"code":"DENIED"}')


def test_while_some_say_nothing_others_are_answered(deployment: Deployment) -> None:
    silent = [connected(deployment) for _ in range(20)]
    try:
        answer = deployment.send(asking())
        assert answer.status == 200
        assert answer.seconds < QUICK
    finally:
        for wire in silent:
            wire.close()


def test_more_than_an_answer_holds_is_too_large(deployment: Deployment) -> None:
    for number in range(30):
        add_pause_state(deployment.store, 1000 + number, "x" * 100_000)
    changed = kept(deployment.store)
    answer = deployment.send(asking())
    assert (answer.status, answer.body) == (403, b'{"code":"TOO_LARGE"}')
    assert answer.signed
    assert kept(deployment.store) == changed
    fewer = deployment.send(asking(a_query(filter={"objective_id": "o1"})))
    assert fewer.told["status"] == "OK"
    _delete_large(deployment)


def _delete_large(deployment: Deployment) -> None:
    with deployment.store.writing() as tx:
        tx.connection.exec_driver_sql(
            "DELETE FROM headway_pause_state WHERE length(prioritized_actions) > 50000"
        )


class Peer:
    """The other side: asks again and again, by the registry file in its own folder."""

    def __init__(self, folder: Path, address: str, keys: list[Key]) -> None:
        self.folder, self.address = folder, address
        self.use(keys)
        self._registry = RegistryFile(folder / "azolla.toml", Observer())
        self._asked = threading.Condition()
        self.over = threading.Event()
        self.count = 0
        self.failures: list[tuple[str, str | None]] = []

    def use(self, keys: list[Key]) -> None:
        write_registry(self.folder, READER, urls={OWN: self.address}, keys={OWN: keys})

    def ask(self) -> None:
        while not self.over.is_set():
            client = PeerClient(self._registry.current(), timedelta(seconds=20))
            response, note = client.query(OWN, SubstrateQuery.model_validate(a_query()))
            with self._asked:
                self.count += 1
                if response.status is not ResponseStatus.OK:
                    self.failures.append((response.status, note))
                self._asked.notify_all()

    def wait_for(self, more: int) -> None:
        with self._asked:
            wanted = self.count + more
            assert self._asked.wait_for(lambda: self.count >= wanted, timeout=60)


def test_keys_are_rotated_under_load_without_a_failure_and_revoked_at_once(
    deployment: Deployment, tmp_path: Path
) -> None:
    def accept(*keys: Key) -> None:
        write_registry(deployment.folder, keys=BOTH | {READER: list(keys)})

    peer = Peer(tmp_path, deployment.addresses[0], [KEY])
    askers = [threading.Thread(target=peer.ask) for _ in range(3)]
    for one in askers:
        one.start()
    try:
        peer.wait_for(10)
        for step in (
            partial(accept, KEY, NEXT_KEY),
            partial(peer.use, [KEY, NEXT_KEY]),
            partial(peer.use, [NEXT_KEY, KEY]),
            partial(peer.use, [NEXT_KEY]),
            partial(accept, NEXT_KEY),
        ):
            step()
            peer.wait_for(10)
    finally:
        peer.over.set()
        for one in askers:
            one.join(timeout=30)
    assert peer.failures == []
    try:
        for server in (0, 1):
            answer = deployment.send(asking(), server)
            assert (answer.status, answer.body) == (403, b'{"code":"DENIED"}'), "revoked"
            assert deployment.send(asking(key=NEXT_KEY), server).status == 200
    finally:
        accept(KEY)
    assert deployment.send(asking()).status == 200


def test_a_registry_that_becomes_wrong_changes_nothing(deployment: Deployment) -> None:
    (deployment.folder / "azolla.toml").write_text("version = 9")
    try:
        assert deployment.send(asking()).status == 200
    finally:
        write_registry(deployment.folder)
