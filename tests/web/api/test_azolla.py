"""The federation over REST: what operators do by command line, they do by requests too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.domain.azolla.artifacts import ResponseStatus
from headway.store import events
from headway.store.tables import audit
from headway.web.app import build_app
from headway.web.security.access import Access
from tests.federation.azolla import Azolla, answering, objective, pause, refusing
from tests.federation.sites import SECRETS, write_registry
from tests.web.api.deployment import Api, FixedTokens
from tests.web.site import listening


@pytest.fixture
def azolla(database_url: str, tmp_path: Path) -> Iterator[Azolla]:
    with Azolla(database_url, azolla_registry=str(write_registry(tmp_path))) as azolla:
        yield azolla


@pytest.fixture
def api(azolla: Azolla) -> Iterator[Api]:
    app = build_app(azolla.app, azolla.store, Access(tokens=FixedTokens()))
    with listening(app) as site:
        yield Api(site, prefix="/api/v1/azolla")


def test_a_page_is_asked_for_and_read(azolla: Azolla, api: Api) -> None:
    assert api.get("/session-manifest").status == 404
    azolla.peers["sales"] = answering(objective("sales", urgency=4), pause("sales", "requeue it"))
    azolla.peers["patches"] = refusing(ResponseStatus.DENIED, "not in its blueprint")

    asked = api.post("/session-manifest")
    assert asked.status == 202
    event = asked.json()["event_id"]
    azolla.worker().run_once()
    azolla.execute()

    read = api.get(f"/session-manifest?event={event}").json()
    assert read == api.get("/session-manifest").json()
    assert read["event_id"] == event
    assert read["session_manifest"]["prioritized_orientation"][0] == "sales: requeue it"
    assert read["gate_result"] == "PASS"
    assert read["gate_reason"].endswith(" from sales, warehouse")
    assert read["created_at"] == read["session_manifest"]["created_at"]
    assert read["content"].startswith("# Where was I?\n")
    notes = ["pause_state: not in its blueprint", "objective: not in its blueprint"]
    denied = {"azolla_id": "patches", "answered": False, "status": "DENIED", "notes": notes}
    assert [(one["azolla_id"], one["status"]) for one in read["said"]] == [
        ("patches", "DENIED"),
        ("sales", "OK"),
        ("warehouse", "OK"),
    ]
    assert read["said"][0] == denied | {"pause_states": 0, "objectives": 0}
    [matter] = read["matters"]
    assert matter == {
        "azolla_id": "sales",
        "objective_id": "standing",
        "actions": ["requeue it"],
        "urgency": 4,
        "importance": 1,
        "since": matter["since"],
    }
    request = api.get(f"/events/{event}").json()
    assert request == {
        "event_id": event,
        "type": "MANIFEST_REQUESTED",
        "created_at": request["created_at"],
        "processed": True,
        "terminal_reason": "SCHEDULED",
        "parked_at": None,
        "attempts": 1,
        "last_error": None,
    }
    assert api.get("/events").json() == {"items": [request], "next": None}
    assert api.get("/session-manifest?event=nothing").status == 404
    assert api.get("/events/nothing").status == 404
    [row] = azolla.rows(audit)
    assert (row["actor"], row["action"]) == ("operate", "session_manifest.request")


def test_peers_are_told_with_their_last_answer_and_without_keys(azolla: Azolla, api: Api) -> None:
    azolla.peers["sales"] = refusing(ResponseStatus.TARGET_UNAVAILABLE, "no route to host")
    azolla.request()
    azolla.worker().run_once()
    azolla.execute()
    answer = api.get("/peers")
    peers = {one["id"]: one for one in answer.json()["items"]}
    assert list(peers) == ["warehouse", "sales", "patches"]
    read = api.get("/session-manifest").json()
    assert (answer.json()["trouble"], answer.json()["asked_at"] is None) == (None, False)
    kinds = ["objective", "pause_state"]
    assert peers["warehouse"] == {
        "id": "warehouse",
        "url": None,
        "blueprint": "task-management",
        "reads": kinds,
        "stores": kinds,
        "keys": [],
        "said": read["said"][1],
    }
    assert peers["sales"] == {
        "id": "sales",
        "url": "http://127.0.0.1:9",
        "blueprint": "task-management",
        "reads": kinds,
        "stores": kinds,
        "keys": ["2026-11"],
        "said": read["said"][0],
    }
    assert (peers["patches"]["reads"], peers["patches"]["blueprint"]) == ([], "code-patch")
    assert peers["sales"]["said"]["status"] == "TARGET_UNAVAILABLE"
    assert peers["patches"]["said"] is None
    assert not any(secret in answer.text for secret in SECRETS.values())


def test_without_a_registry_it_says_why_there_are_no_peers(sqlite_url: str) -> None:
    with Azolla(sqlite_url) as azolla:
        app = build_app(azolla.app, azolla.store, Access(tokens=FixedTokens()))
        with listening(app) as site:
            told = Api(site, prefix="/api/v1/azolla").get("/peers").json()
    assert (told["asked_at"], told["items"]) == (None, [])
    assert "azolla_registry" in told["trouble"]


def test_a_parked_request_is_put_back_once(azolla: Azolla, api: Api) -> None:
    event = azolla.request()
    assert api.post(f"/events/{event}/unpark").status == 409
    with azolla.store.writing() as tx:
        events.park(tx, event)
    other = azolla.request()
    assert [one["event_id"] for one in api.get("/events?parked=true").json()["items"]] == [event]
    assert [one["event_id"] for one in api.get("/events").json()["items"]] == [other, event]
    assert api.get(f"/events/{event}").json()["parked_at"] is not None

    assert api.post(f"/events/{event}/unpark").json()["parked_at"] is None

    assert api.get("/events?parked=true").json()["items"] == []
    assert api.post("/events/nothing/unpark").status == 404


def test_captures_are_left_listed_and_sorted(api: Api) -> None:
    made = api.post("/captures", {"text": "orders look low"})
    assert (made.status, made.json()["source_label"]) == (201, "operate")
    key = made.json()["capture_id"]
    assert made.json() == {
        "capture_id": key,
        "azolla_id": "warehouse",
        "raw_content": "orders look low",
        "source_label": "operate",
        "status": "PENDING",
        "created_at": made.json()["created_at"],
        "updated_at": made.json()["updated_at"],
    }
    other = api.post("/captures", {"text": "and high", "source": "standup"}).json()
    assert other["source_label"] == "standup"
    assert api.post(f"/captures/{other['capture_id']}/process").json() == {
        "capture_id": other["capture_id"],
        "status": "PROCESSED",
    }
    listed = api.get("/captures").json()["items"]
    assert [one["capture_id"] for one in listed] == [other["capture_id"], key]
    assert listed[1] == made.json()
    assert [one["capture_id"] for one in api.get("/captures?status=PENDING").json()["items"]] == [
        key
    ]
    assert api.post(f"/captures/{key}/process").json()["status"] == "PROCESSED"
    assert api.post(f"/captures/{key}/process").status == 404
    assert api.get("/captures?status=PENDING").json()["items"] == []


def test_an_objective_is_changed_only_as_it_was_seen(api: Api) -> None:
    asked = {"title": "clean up", "acceptance_criteria": "gone", "importance": 2, "urgency": 3}
    made = api.post("/objectives", asked)
    assert made.status == 201
    assert made.json() == asked | {
        "objective_id": made.json()["objective_id"],
        "azolla_id": "warehouse",
        "objective_type": "TICKET",
        "status": "NEW",
        "blocked_reason": None,
        "blocked_on": [],
        "created_at": made.json()["created_at"],
        "updated_at": made.json()["created_at"],
    }
    one = f"/objectives/{made.json()['objective_id']}"
    tag = api.get(one).headers["etag"]
    assert api.patch(one, {"urgency": 4}).status == 428
    changed = api.patch(one, {"urgency": 4}, if_match=tag)
    assert (changed.status, changed.json()["urgency"]) == (200, 4)
    assert changed.json() == api.get(one).json()
    kept = ("title", "acceptance_criteria", "importance", "status")
    assert {name: changed.json()[name] for name in kept} == {
        name: made.json()[name] for name in kept
    }
    assert api.patch(one, {"status": "DONE"}, if_match=tag).status == 412
    done = api.patch(one, {"status": "DONE"}, if_match=changed.headers["etag"])
    assert done.json()["status"] == "DONE"
    assert [o["title"] for o in api.get("/objectives?status=DONE").json()["items"]] == ["clean up"]
    assert [o["title"] for o in api.get("/objectives").json()["items"]] == [
        "keep warehouse going",
        "clean up",
    ]
    assert api.patch("/objectives/nothing", {"urgency": 1}, if_match=tag).status == 404
    assert api.patch(one, {}, if_match=done.headers["etag"]).status == 422


def test_an_objective_is_blocked_until_its_blocker_is_gone(api: Api) -> None:
    made = api.post("/objectives", {"title": "clean up"}).json()
    one = f"/objectives/{made['objective_id']}"
    asked = {"kind": "USER_INPUT", "description": "which tables?"}
    blocker = api.post(f"{one}/blockers", asked)
    assert (blocker.status, api.get(one).json()["status"]) == (201, "BLOCKED")
    key = blocker.json()["blocker_id"]
    assert blocker.json() == asked | {"blocker_id": key, "resolved": False}
    assert api.get(one).json()["blocked_on"] == [blocker.json()]
    assert api.post(f"/blockers/{key}/resolve").json() == {"blocker_id": key, "resolved": True}
    assert api.get(one).json()["status"] == "TODO"
    assert api.post("/blockers/nothing/resolve").status == 404
    assert api.post("/objectives/nothing/blockers", asked).status == 404


def test_what_is_sent_again_with_its_key_is_done_once(azolla: Azolla, api: Api) -> None:
    sent = {"title": "clean up"}
    first = api.post("/objectives", sent, idempotency_key="monday")
    again = api.post("/objectives", sent, idempotency_key="monday")
    assert first.json() == again.json()
    assert len(api.get("/objectives?status=NEW").json()["items"]) == 1
    for _ in range(2):
        assert api.post("/session-manifest", idempotency_key="page").status == 202
    assert len(api.get("/events").json()["items"]) == 1


def test_pause_states_come_in_pages(azolla: Azolla, api: Api) -> None:
    for number in range(3):
        azolla.pause(f"p{number}", f"action {number}")
    seen, cursor = [], ""
    while cursor is not None:
        page = api.get(f"/pause-states?limit=2&cursor={cursor}").json()
        seen += [one["pause_id"] for one in page["items"]]
        cursor = page["next"]
    assert sorted(seen) == ["p0", "p1", "p2"]
    assert api.get("/pause-states?reason=RUN_COMPLETE").json()["items"] == []
    paused = api.get("/pause-states?reason=GATE_FAILED").json()["items"]
    assert len(paused) == 3
    [first] = [one for one in paused if one["pause_id"] == "p0"]
    assert first == {
        "pause_id": "p0",
        "objective_id": "standing",
        "azolla_id": "warehouse",
        "reason": "GATE_FAILED",
        "prioritized_actions": ["action 0"],
        "created_at": first["created_at"],
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/captures", {"text": ""}),
        ("/captures", {"text": "x", "more": 1}),
        ("/objectives", {"title": "x", "urgency": 5}),
        ("/objectives", {"title": "x", "urgency": "3"}),
        ("/objectives", {}),
    ],
)
def test_what_breaks_a_rule_is_422_and_changes_nothing(
    azolla: Azolla, api: Api, path: str, body: dict[str, object]
) -> None:
    answer = api.post(path, body)
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
    assert azolla.rows(audit) == []


@pytest.mark.parametrize("path", ["/session-manifest", "/captures", "/objectives"])
def test_a_reader_may_only_read(azolla: Azolla, api: Api, path: str) -> None:
    reader = Api(api.site, "read", api.prefix)
    assert reader.post(path, {"title": "x", "text": "x"}).status == 403
    assert Api(api.site, None, api.prefix).get(path).status == 401
