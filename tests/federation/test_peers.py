"""Asking peers that behave, and those that do not: in time, and believed only if it is true."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headway.domain.azolla.artifacts import ResponseStatus, SubstrateQuery, SubstrateQueryResponse
from headway.domain.azolla.ids import response_to
from headway.federation.peers import PeerClient, Ping
from headway.federation.registry import Registry
from tests.federation.sites import KEY, NEXT_KEY, NOW, OWN, READER, a_query, write_registry
from tests.federation.wicked import (
    DEEDS,
    PAUSE,
    Deed,
    Visit,
    peer_that,
    seconds_since,
)

TIMEOUT = timedelta(seconds=1)


def client_of(folder: Path, url: str) -> PeerClient:
    file = write_registry(folder, READER, urls={OWN: url}, keys={OWN: [KEY, NEXT_KEY]})
    return PeerClient(Registry.load(file), TIMEOUT)


def ask(client: PeerClient, **changes: object) -> tuple[SubstrateQueryResponse, str | None]:
    return client.query(OWN, SubstrateQuery.model_validate(a_query(**changes)))


def test_a_right_answer_is_believed(tmp_path: Path) -> None:
    with peer_that(lambda visit: visit.answer(visit.response(results=[PAUSE]))) as peer:
        response, note = ask(client_of(tmp_path, peer.url))
    assert (response.status, note) == (ResponseStatus.OK, None)
    assert response.results == (PAUSE,)
    [visit] = peer.visits
    assert visit.headers["headway-source"] == READER
    assert visit.headers["headway-target"] == OWN
    assert visit.headers["headway-key"] == KEY.id, "the first key signs"
    asked = a_query(query_id=visit.body["query_id"])
    assert SubstrateQuery.model_validate(visit.body) == SubstrateQuery.model_validate(asked)
    assert abs(int(visit.headers["headway-timestamp"]) - time.time()) < 60


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_whatever_a_peer_does_the_query_ends_as_unavailable(tmp_path: Path, deed: Deed) -> None:
    with peer_that(deed) as peer:
        client = client_of(tmp_path, peer.url)
        start = time.monotonic()
        response, note = ask(client)
        assert seconds_since(start) < TIMEOUT.total_seconds() + 1
    assert response.status is ResponseStatus.TARGET_UNAVAILABLE
    assert response.results == ()
    assert note is not None
    assert "\n" not in note
    assert len(note) < 120
    assert len(peer.visits) == 1, "neither followed nor tried again"
    assert peer.visits[0].sent < 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("status", "body", "expected", "said"),
    [
        (403, {"code": "DENIED"}, "DENIED", "DENIED: it does not know this deployment"),
        (403, {"code": "STALE"}, "DENIED", "STALE: its clock and ours differ"),
        (403, {"code": "REPLAYED"}, "DENIED", "REPLAYED: it has seen this request before"),
        (403, {"code": "TOO_LARGE"}, "DENIED", "TOO_LARGE: more than it sends"),
        (503, {"code": "TARGET_UNAVAILABLE"}, "TARGET_UNAVAILABLE", "cannot read its own database"),
        (403, {"code": "SOMETHING"}, "TARGET_UNAVAILABLE", "answered with HTTP status 403"),
        (403, ["DENIED"], "TARGET_UNAVAILABLE", "answered with HTTP status 403"),
        (302, b"", "TARGET_UNAVAILABLE", "redirects, and redirects are not followed"),
        (404, b"<html>", "TARGET_UNAVAILABLE", "answered with HTTP status 404"),
    ],
)
def test_a_refusal_is_told_by_its_code(
    tmp_path: Path, status: int, body: object, expected: str, said: str
) -> None:
    with peer_that(lambda visit: visit.answer(body, status=status)) as peer:
        response, note = ask(client_of(tmp_path, peer.url))
    assert response.status == expected
    assert said in (note or "")


def test_denied_by_its_checks_is_denied(tmp_path: Path) -> None:
    with peer_that(lambda visit: visit.answer(visit.response(status="DENIED"))) as peer:
        response, note = ask(client_of(tmp_path, peer.url))
    assert response.status is ResponseStatus.DENIED
    assert note == "pause_state is not for us, or not stored there"


def test_nobody_there(tmp_path: Path) -> None:
    with peer_that(lambda visit: None) as peer:
        url = peer.url
    response, note = ask(client_of(tmp_path, url))
    assert response.status is ResponseStatus.TARGET_UNAVAILABLE
    assert note == "could not be asked: Connection refused"


def test_a_name_nobody_knows(tmp_path: Path) -> None:
    response, note = ask(client_of(tmp_path, "http://nothere.invalid:8701"))
    assert response.status is ResponseStatus.TARGET_UNAVAILABLE
    assert (note or "").startswith(("could not be asked", "did not answer"))


def test_somebody_who_is_not_in_the_registry(tmp_path: Path) -> None:
    client = client_of(tmp_path, "http://127.0.0.1:9")
    response, note = client.query("nobody", SubstrateQuery.model_validate(a_query()))
    assert response.status is ResponseStatus.TARGET_UNAVAILABLE
    assert note == "is not in the registry"


def test_what_stands_in_for_an_answer_says_to_which_query_and_when(tmp_path: Path) -> None:
    moment = NOW + timedelta(hours=1)
    client = PeerClient(Registry.load(write_registry(tmp_path)), TIMEOUT, clock=lambda: moment)
    query = SubstrateQuery.model_validate(a_query())
    response, _ = client.query("nobody", query)
    assert response == SubstrateQueryResponse(
        response_id=response_to(query.query_id),
        query_id=query.query_id,
        target_azolla_id="nobody",
        status=ResponseStatus.TARGET_UNAVAILABLE,
        created_at=moment,
    )


def test_plain_http_where_https_is_expected(tmp_path: Path) -> None:
    with peer_that(lambda visit: None) as peer:
        client = client_of(tmp_path, peer.url.replace("http:", "https:"))
        start = time.monotonic()
        response, _ = ask(client)
        assert seconds_since(start) < TIMEOUT.total_seconds() + 1
    assert response.status is ResponseStatus.TARGET_UNAVAILABLE


def test_proxies_of_the_environment_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with peer_that(lambda visit: None) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        with peer_that(lambda visit: visit.answer(visit.response())) as peer:
            response, _ = ask(client_of(tmp_path, peer.url))
    assert response.status is ResponseStatus.OK
    assert proxy.visits == []


def pong(visit: Visit, **changes: object) -> None:
    said = {"azolla_id": OWN, "at": (datetime.now(UTC) + timedelta(seconds=30)).isoformat()}
    visit.answer(said | changes)


def test_a_ping_tells_how_the_clocks_differ(tmp_path: Path) -> None:
    with peer_that(pong) as peer:
        ping = client_of(tmp_path, peer.url).ping(OWN)
    assert (ping.peer_id, ping.note) == (OWN, None)
    assert ping.ahead is not None
    assert abs(ping.ahead - timedelta(seconds=30)) < timedelta(seconds=5)


def test_the_clock_of_a_peer_is_compared_with_the_middle_of_the_time_it_took(
    tmp_path: Path,
) -> None:
    moments = [NOW, NOW, NOW + timedelta(seconds=2)]  # begun, signed, answered

    def answer(visit: Visit) -> None:
        pong(visit, at=(NOW + timedelta(seconds=31)).isoformat())

    with peer_that(answer) as peer:
        file = write_registry(tmp_path, READER, urls={OWN: peer.url}, keys={OWN: [KEY]})
        client = PeerClient(Registry.load(file), TIMEOUT, clock=lambda: moments.pop(0))
        assert client.ping(OWN) == Ping(OWN, ahead=timedelta(seconds=30))
    [visit] = peer.visits
    assert visit.headers["headway-timestamp"] == str(int(NOW.timestamp()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"azolla_id": "another"}, "answers for somebody else"),
        ({"at": "soon"}, "its answer is no answer to a ping"),
        ({"extra": 1}, "its answer is no answer to a ping"),
    ],
)
def test_a_ping_that_is_answered_wrongly(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    with peer_that(lambda visit: pong(visit, **changes)) as peer:
        assert client_of(tmp_path, peer.url).ping(OWN).note == said
