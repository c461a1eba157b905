"""The membrane by itself, on both databases: who is answered, with what, and what is noted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from headway.domain.azolla.artifacts import ResponseStatus, SubstrateQuery
from headway.domain.azolla.ids import response_to
from headway.errors import DatabaseUnavailable
from headway.federation.membrane import Answer, Membrane
from headway.federation.registry import Registry
from headway.federation.signing import answers
from headway.observe import Event, Observer
from headway.store.engine import Store
from headway.store.limits import reading_within
from tests.federation.sites import (
    EXECUTOR,
    EXECUTORS_KEY,
    KEY,
    NOW,
    OWN,
    PING_PATH,
    READER,
    Asking,
    a_query,
    add_objective,
    add_pause_state,
    asking,
    counted,
    kept,
    opened,
    write_registry,
)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(database_url: str, clock: Clock) -> Iterator[Store]:
    with opened(database_url, clock=clock) as store:
        yield store


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry.load(write_registry(tmp_path))


@pytest.fixture
def membrane(store: Store, registry: Registry) -> Membrane:
    return Membrane(store, registry, Observer())


def ask(membrane: Membrane, query: Any = None, **how: Any) -> Answer:
    return membrane.answer(*asking(query, at=NOW, **how).parts)


def told(answer: Answer) -> Any:
    return json.loads(answer.body)


def audited(store: Store) -> list[tuple[str, str, str]]:
    with store.reading() as tx:
        rows = tx.connection.execute(
            text("SELECT actor, subject, detail FROM headway_audit ORDER BY id")
        )
        return [(row.actor, row.subject, row.detail) for row in rows]


def test_a_known_peer_gets_what_its_blueprint_reads(membrane: Membrane, store: Store) -> None:
    add_pause_state(store)
    query = a_query()
    answer = ask(membrane, query)

    assert answer.status == 200
    response = told(answer)
    assert response["status"] == "OK"
    assert response["query_id"] == query["query_id"]
    assert response["target_azolla_id"] == OWN
    assert response["response_id"] == response_to(query["query_id"])
    assert datetime.fromisoformat(response["created_at"]) == NOW
    assert [one["objective_id"] for one in response["results"]] == ["o1"]
    assert audited(store) == [(READER, "pause_state", "OK, 1 results")]


def test_an_answer_is_signed_for_its_request_alone(membrane: Membrane) -> None:
    asked, other = asking(at=NOW), asking(at=NOW)
    answer = membrane.answer(*asked.parts)

    def signed_for(request: Asking, body: bytes = answer.body) -> bool:
        signature = dict(request.headers)["headway-signature"]
        return answers(
            *(KEY, signature, list(answer.headers.items())),
            status=answer.status,
            body=body,
            source=OWN,
            target=READER,
        )

    assert signed_for(asked)
    assert not signed_for(other)
    assert not signed_for(asked, answer.body + b" ")


def test_filters_narrow_the_answer(membrane: Membrane, store: Store) -> None:
    add_objective(store, urgency=1)
    add_objective(store, urgency=4)
    query = a_query(artifact_type="objective", filter={"min_urgency": 3})
    assert [one["urgency"] for one in told(ask(membrane, query))["results"]] == [4]


@pytest.mark.parametrize(
    ("changes", "how"),
    [
        pytest.param({"artifact_type": "workorder"}, {}, id="unknown type"),
        pytest.param({"artifact_type": "blocker_ref"}, {}, id="type the source does not read"),
        pytest.param(
            {"source_azolla_id": EXECUTOR},
            {"source": EXECUTOR, "key": EXECUTORS_KEY},
            id="source that reads nothing",
        ),
        pytest.param({"source_azolla_id": EXECUTOR}, {}, id="body of another source"),
        pytest.param({"target_azolla_id": "elsewhere"}, {}, id="body for another target"),
        pytest.param({"filter": {"colour": "red"}}, {}, id="unknown key"),
        pytest.param({"filter": {"limit": 10**9}}, {}, id="endless result"),
        pytest.param({"filter": {"limit": True}}, {}, id="true as a number"),
        pytest.param({"filter": {"limit": "5"}}, {}, id="text as a number"),
        pytest.param({"filter": {"limit": 5.0}}, {}, id="fraction as a number"),
        pytest.param({"filter": {"unsettled": 1}}, {}, id="number as a flag"),
        pytest.param({"filter": {"objective_id": ["o"] * 10_000}}, {}, id="ten thousand ids"),
        pytest.param({"filter": {"objective_id": {"$ne": 1}}}, {}, id="operator"),
        pytest.param({"filter": {"reason": "'; DROP TABLE x; --"}}, {}, id="statement"),
        pytest.param({"filter": {"set": {"status": "DONE"}}}, {}, id="write"),
    ],
)
def test_what_fails_a_check_is_denied_with_a_signed_response(
    membrane: Membrane, store: Store, changes: dict[str, Any], how: dict[str, Any]
) -> None:
    add_pause_state(store)
    before = kept(store)
    answer = ask(membrane, a_query(**changes), **how)

    assert answer.status == 200
    assert (told(answer)["status"], told(answer)["results"]) == ("DENIED", [])
    assert "headway-signature" in answer.headers
    assert kept(store) == before
    asked_for = changes.get("artifact_type", "pause_state")
    assert audited(store) == [(how.get("source", READER), asked_for, "DENIED")]


def test_a_type_that_may_be_read_has_to_be_stored_too(store: Store, tmp_path: Path) -> None:
    file = write_registry(tmp_path)
    reads, stores = 'reads = ["pause_state", "objective"', 'stores = ["pause_state", "objective"'
    query = a_query(artifact_type="blocker_ref")
    for more, status in ((reads, "DENIED"), (stores, "OK")):
        file.write_text(file.read_text().replace(more, f'{more}, "blocker_ref"', 1))
        membrane = Membrane(store, Registry.load(file), Observer())
        assert told(ask(membrane, query))["status"] == status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{" * 5_000,
        b"[" * 30_000 + b"]" * 30_000,
        b'{"query_id": NaN}',
        b"\xff\xfe{}",
        b'{"a": 1, "a": 1}',
        b'{"query_id": "\\ud800"}',
        json.dumps(a_query(version=2)).encode(),
        json.dumps(a_query(query_id="a\0b")).encode(),
        json.dumps(a_query(filter={"limit": 1}) | {"created_at": "soon"}).encode(),
        b'{"query_id": ' + b"9" * 5_000 + b"}",
        b'{"created_at": 1e999}',
    ],
)
def test_a_signed_body_that_is_no_query_is_denied(
    membrane: Membrane, store: Store, body: bytes
) -> None:
    before = kept(store)
    answer = ask(membrane, body)
    assert (answer.status, told(answer)) == (403, {"code": "DENIED"})
    assert kept(store) == before
    assert audited(store) == [(READER, "unreadable", "DENIED")]


def test_who_was_answered_and_who_was_refused_is_told(store: Store, registry: Registry) -> None:
    observer = Observer()
    seen: list[Event] = []
    observer.subscribe(seen.append)
    membrane = Membrane(store, registry, observer, largest_answer=3_000)
    add_pause_state(store)
    ask(membrane)
    ask(membrane, a_query(artifact_type="workorder"))
    ask(membrane, b"[]")
    add_pause_state(store, 2, "x" * 5_000)
    ask(membrane)
    ask(membrane, b"", method="GET", path=PING_PATH)
    ask(membrane, key=EXECUTORS_KEY)
    membrane.answer("GET", PING_PATH, [], b"")
    assert [(event.name, event.fields) for event in seen] == [
        ("membrane.answered", answered("pause_state", "OK", 1)),
        ("membrane.answered", answered("workorder", "DENIED")),
        ("membrane.answered", answered("unreadable", "DENIED")),
        ("membrane.answered", answered("pause_state", "TOO_LARGE")),
        ("membrane.refused", {"source": READER, "code": "DENIED"}),
        ("membrane.refused", {"source": None, "code": "DENIED"}),
    ]


def answered(kind: str, status: str, results: int = 0) -> dict[str, Any]:
    return {"source": READER, "artifact_type": kind, "status": status, "results": results}


def unsigned(answer: Answer, code: str) -> bool:
    return (answer.status, told(answer), answer.headers) == (403, {"code": code}, {})


@pytest.mark.parametrize(
    "header",
    ["source", "target", "timestamp", "nonce", "key", "signature"],
)
def test_a_request_without_one_of_its_headers_or_with_two_is_denied(
    membrane: Membrane, store: Store, header: str
) -> None:
    asked = asking(at=NOW)
    method, path, headers, body = asked.parts
    twice = [*headers, next(one for one in headers if one[0] == f"headway-{header}")]
    assert unsigned(membrane.answer(*asked.with_header(f"headway-{header}", None).parts), "DENIED")
    assert unsigned(membrane.answer(method, path, twice, body), "DENIED")
    assert counted(store)["headway_nonce"] == counted(store)["headway_audit"] == 0


def test_a_request_for_somebody_else_is_denied(membrane: Membrane) -> None:
    assert unsigned(ask(membrane, target="elsewhere"), "DENIED")


def test_a_peers_key_speaks_for_nobody_else(membrane: Membrane) -> None:
    assert unsigned(ask(membrane, a_query(), key=EXECUTORS_KEY), "DENIED")


def test_a_request_is_believed_for_a_minute_by_the_databases_clock(
    membrane: Membrane, clock: Clock
) -> None:
    asked = asking(at=NOW)
    for apart in (timedelta(seconds=61), timedelta(seconds=-61), timedelta(minutes=10)):
        clock.now = NOW + apart
        assert unsigned(membrane.answer(*asked.parts), "STALE")
    clock.now = NOW + timedelta(seconds=60)
    assert membrane.answer(*asked.parts).status == 200


def test_a_request_is_taken_once_by_all_servers_together(
    membrane: Membrane, registry: Registry, database_url: str, clock: Clock
) -> None:
    asked = asking(at=NOW)
    assert membrane.answer(*asked.parts).status == 200
    with opened(database_url, clock=clock) as second:
        other = Membrane(second, registry, Observer())
        assert unsigned(other.answer(*asked.parts), "REPLAYED")
    assert unsigned(membrane.answer(*asked.parts), "REPLAYED")


def test_nonces_are_forgotten_after_five_minutes(
    membrane: Membrane, store: Store, clock: Clock
) -> None:
    for _ in range(5):
        ask(membrane)
    clock.now = NOW + timedelta(minutes=5, seconds=1)
    membrane.answer(*asking(at=clock.now).parts)
    assert counted(store)["headway_nonce"] == 1


def test_strangers_cannot_write_into_the_database(membrane: Membrane, store: Store) -> None:
    before = counted(store)
    for _ in range(20):
        membrane.answer(*asking(at=NOW).with_header("headway-signature", "0" * 64).parts)
        ask(membrane, source="nobody")
    assert counted(store) == before


def test_other_ways_in_are_denied(membrane: Membrane) -> None:
    for method, path in [
        ("GET", "/azolla/v1/query"),
        ("POST", "/azolla/v2/query"),
        ("PUT", "/azolla/v1/query"),
        ("POST", "/azolla/v1/query?x=1"),
        ("GET", "/"),
    ]:
        assert unsigned(ask(membrane, method=method, path=path), "DENIED")


def test_a_large_request_is_refused_unread(membrane: Membrane) -> None:
    assert unsigned(ask(membrane, b" " * (64 * 1024 + 1)), "TOO_LARGE")
    assert told(ask(membrane, b" " * (64 * 1024))) == {"code": "DENIED"}, "it is read"


def test_more_than_one_answer_may_hold_is_refused(store: Store, registry: Registry) -> None:
    small = Membrane(store, registry, Observer(), largest_answer=3_000)
    for number in range(50):
        add_pause_state(store, number, "x" * 100)
    answer = ask(small)
    assert (answer.status, told(answer)) == (403, {"code": "TOO_LARGE"})
    assert "headway-signature" in answer.headers
    assert told(ask(small, a_query(filter={"limit": 5})))["status"] == "OK"
    assert [detail for _, _, detail in audited(store)] == ["TOO_LARGE", "OK, 5 results"]


def test_an_answer_is_as_large_as_it_may_be_and_no_larger(store: Store, registry: Registry) -> None:
    add_pause_state(store)
    size = len(ask(Membrane(store, registry, Observer())).body)
    just_right = Membrane(store, registry, Observer(), largest_answer=size)
    assert told(ask(just_right))["status"] == "OK"
    too_small = Membrane(store, registry, Observer(), largest_answer=size - 1)
    assert told(ask(too_small)) == {"code": "TOO_LARGE"}


def test_a_reading_that_takes_too_long_is_told_as_such(
    postgres_url: str, registry: Registry, clock: Clock
) -> None:
    observer = Observer()
    seen: list[Event] = []
    observer.subscribe(seen.append)
    with opened(postgres_url, clock=clock) as store, store.writing() as tx:
        tx.connection.execute(text("LOCK TABLE headway_pause_state"))
        impatient = Membrane(store, registry, observer, longest_reading=timedelta(milliseconds=50))
        assert told(ask(impatient)) == {"code": "TARGET_UNAVAILABLE"}
    assert [(event.name, event.fields) for event in seen] == [
        ("membrane.unavailable", {"error": "the reading took too long"})
    ]


def test_a_ping_tells_who_answers_and_the_time(membrane: Membrane) -> None:
    answer = ask(membrane, b"", method="GET", path=PING_PATH)
    assert (answer.status, told(answer)) == (200, {"azolla_id": OWN, "at": NOW.isoformat()})
    assert "headway-signature" in answer.headers


def test_reading_cannot_write(store: Store) -> None:
    with (
        pytest.raises(DatabaseUnavailable, match=r"read-only|readonly"),
        reading_within(store, timedelta(seconds=2)) as tx,
    ):
        tx.connection.execute(text("DELETE FROM headway_objective"))


ENDLESS = """
WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting)
SELECT count(*) FROM counting
"""


def test_reading_ends_when_its_time_is_over(store: Store) -> None:
    begun = time.monotonic()
    with (
        pytest.raises(DatabaseUnavailable, match=r"timeout|interrupted"),
        reading_within(store, timedelta(milliseconds=200)) as tx,
    ):
        tx.connection.execute(text(ENDLESS))
    assert time.monotonic() - begun < 60, "it would never have ended"
    with store.reading() as tx:
        assert tx.connection.execute(text("SELECT 1")).scalar_one() == 1


@pytest.mark.parametrize("table", ["headway_pause_state", "headway_nonce"])
def test_a_database_that_is_away_is_said_without_details(
    registry: Registry, store: Store, table: str
) -> None:
    observer = Observer()
    seen: list[Event] = []
    observer.subscribe(seen.append)
    with store.writing() as tx:
        tx.connection.execute(text(f"ALTER TABLE {table} RENAME TO hidden"))
    answer = ask(Membrane(store, registry, observer))
    assert (answer.status, told(answer)) == (503, {"code": "TARGET_UNAVAILABLE"})
    [event] = seen
    assert event.name == "membrane.unavailable"
    assert table in event.fields["error"]


def local(**changes: Any) -> SubstrateQuery:
    return SubstrateQuery.model_validate(a_query(source_azolla_id=OWN, **changes))


def test_a_deployment_reads_its_own_substrate_without_a_request(
    membrane: Membrane, store: Store
) -> None:
    add_pause_state(store)
    found = membrane.read(local())
    assert (found.status, len(found.results)) == (ResponseStatus.OK, 1)
    assert found.target_azolla_id == OWN
    assert membrane.read(local(filter={"x": 1})).status is ResponseStatus.DENIED
    assert membrane.read(local(artifact_type="blocker_ref")).status is ResponseStatus.DENIED
    assert counted(store)["headway_audit"] == 0


def test_too_much_of_its_own_is_unavailable(store: Store, registry: Registry) -> None:
    add_pause_state(store, text="x" * 5_000)
    small = Membrane(store, registry, Observer(), largest_answer=3_000)
    assert small.read(local()).status is ResponseStatus.TARGET_UNAVAILABLE
