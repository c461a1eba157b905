"""The federation in the dashboard: the page, requests, peers, captures, objectives, pauses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.domain.azolla.artifacts import ResponseStatus
from headway.store import events
from headway.store.tables import audit
from tests.federation.azolla import OWN, Azolla, answering, objective, pause, refusing
from tests.federation.sites import write_registry
from tests.web.visiting import Visitor, visiting

XSS = "<script>alert(1)</script>"


@pytest.fixture
def azolla(database_url: str, tmp_path: Path) -> Iterator[Azolla]:
    with Azolla(database_url, azolla_registry=str(write_registry(tmp_path))) as azolla:
        yield azolla


@pytest.fixture
def visitor(azolla: Azolla) -> Iterator[Visitor]:
    with visiting(azolla.app, azolla.store) as visitor:
        yield visitor


def built(azolla: Azolla) -> str:
    """A page over three deployments: one answers, one denies, one is away."""
    azolla.peers["sales"] = answering(
        objective("sales", urgency=4), pause("sales", "requeue load-orders", "tell finance")
    )
    azolla.peers["patches"] = refusing(ResponseStatus.DENIED, "not in its blueprint")
    azolla.peers["archive"] = refusing(ResponseStatus.TARGET_UNAVAILABLE, "no route to host")
    azolla.pause("p1", "look at dead letter 12")
    event = azolla.request()
    azolla.worker().run_once()
    azolla.execute()
    return event


def test_the_page_says_what_to_do_first_and_who_did_not_answer(
    azolla: Azolla, visitor: Visitor
) -> None:
    event = built(azolla)
    for path in ("/azolla", f"/azolla?event={event}"):
        said = visitor.text(path)
        first, second = said.index("sales: requeue load-orders"), said.index("dead letter 12")
        assert first < second
        assert "then: tell finance" in said
        assert "patches pause_state: not in its blueprint denied" in said
        assert "archive pause_state: no route to host did not answer" in said
        assert "sales 1 pause state, 1 objective answered" in said


def test_without_a_page_it_says_how_to_get_one(visitor: Visitor) -> None:
    said = visitor.text("/azolla")
    assert "Nobody has asked yet" in said
    assert "Ask all deployments" in said
    assert "Ask all deployments, and" in visitor.as_("read").text("/azolla")


def test_a_request_is_sent_once_and_noted(azolla: Azolla, visitor: Visitor) -> None:
    answer = visitor.post("/azolla/request", on="/azolla")
    assert (answer.status, answer.headers["location"]) == (303, "/azolla")
    assert "manifest requested" in visitor.text("/azolla/events")
    [row] = azolla.rows(audit)
    assert (row["actor"], row["action"]) == ("the admin", "session_manifest.request")


def test_a_reader_may_not_ask(azolla: Azolla, visitor: Visitor) -> None:
    reader = visitor.as_("read")
    assert "Ask all deployments</button>" not in reader.get("/azolla/events").text
    assert reader.post("/azolla/request", on="/azolla").status == 403
    assert [row["action"] for row in azolla.rows(audit)] == ["denied"]
    assert "Nobody has asked yet" in visitor.text("/azolla/events")


def test_a_parked_request_is_put_back(azolla: Azolla, visitor: Visitor) -> None:
    event = azolla.request()
    with azolla.store.writing() as tx:
        events.park(tx, event)
    assert "waits for a person" in visitor.text("/azolla")
    assert "parked" in visitor.text("/azolla/events?state=parked")

    visitor.post(f"/azolla/events/{event}/unpark", on="/azolla/events")

    assert event not in visitor.text("/azolla/events?state=parked")
    assert f"{event} manifest requested waits" in visitor.text("/azolla/events")


def test_unparking_what_is_not_parked_is_told(visitor: Visitor) -> None:
    answer = visitor.post("/azolla/events/nothing/unpark", on="/azolla")
    assert answer.status == 303
    assert "headway-told=" in answer.headers["set-cookie"]


def test_peers_show_what_each_said_and_no_secret(azolla: Azolla, visitor: Visitor) -> None:
    built(azolla)
    said = visitor.text("/azolla/peers")
    assert "warehouse this deployment" in said
    assert "patches http://127.0.0.1:9 code-patch nothing" in said
    assert "denied" in said
    assert "qN3mZr8Vt1Kx7Lw5Yb2Hc9Jd4Fg6Sp0A" not in said


def test_a_registry_that_is_wrong_is_told(azolla: Azolla, visitor: Visitor) -> None:
    path = azolla.app.settings.azolla_registry
    assert path is not None
    Path(path).write_text("version = 7")
    assert "version" in visitor.text("/azolla/peers")


def test_a_capture_is_left_and_sorted(azolla: Azolla, visitor: Visitor) -> None:
    visitor.post("/azolla/captures", on="/azolla/captures", text=f"orders look low {XSS}")
    page = visitor.get("/azolla/captures").text
    assert XSS not in page
    assert "&lt;script&gt;" in page
    [one] = azolla.app.azolla.captures()

    visitor.post("/azolla/captures/process", on="/azolla/captures", capture=one.capture_id)

    assert azolla.app.azolla.captures() == []
    assert "Nothing to sort" in visitor.text("/azolla/captures")
    assert "orders look low" in visitor.text("/azolla/captures?status=PROCESSED")
    assert [row["action"] for row in azolla.rows(audit)] == ["capture.add", "capture.process"]


def test_an_objective_is_added_blocked_resolved_and_done(azolla: Azolla, visitor: Visitor) -> None:
    here = "/azolla/objectives"
    visitor.post(here, on=here, title=f"clean up {XSS}", urgency="3", importance="1")
    [one] = [it for it in azolla.app.azolla.objectives() if it.objective_id != "standing"]
    assert (one.urgency, one.importance, one.status) == (3, 1, "NEW")

    block = {"kind": "USER_INPUT", "description": "which tables?"}
    visitor.post(f"{here}/{one.objective_id}/block", on=here, **block)
    assert "blocked" in visitor.text(here)
    [blocked] = azolla.app.azolla.objectives(status="BLOCKED")
    visitor.post(f"/azolla/blockers/{blocked.blocked_on[0].blocker_id}/resolve", on=here)
    visitor.post(f"{here}/{one.objective_id}", on=here, status="DONE")

    assert one.objective_id not in visitor.text(here)
    done = visitor.get(f"{here}?status=DONE").text
    assert one.objective_id in done
    assert XSS not in done


def test_what_is_refused_is_told_and_changes_nothing(azolla: Azolla, visitor: Visitor) -> None:
    here = "/azolla/objectives"
    before = azolla.app.azolla.objectives()
    for sent in ({"title": ""}, {"title": "x", "urgency": "9"}, {"title": "x", "urgency": "soon"}):
        answer = visitor.post(here, on=here, **sent)
        assert (answer.status, "headway-told=" in answer.headers["set-cookie"]) == (303, True)
    visitor.post(f"{here}/standing", on=here, status="DONE")
    assert azolla.app.azolla.objectives() == before


def test_pause_states_can_be_filtered_and_turned_over(azolla: Azolla, visitor: Visitor) -> None:
    for number in range(55):
        azolla.pause(f"p{number:02}", f"action {number:02}")
    first = visitor.get("/azolla/pause-states").text
    assert first.count("<tr>") == 1 + 50
    [cursor] = {part.split('"')[0] for part in first.split("cursor=")[1:]}
    assert visitor.get(f"/azolla/pause-states?cursor={cursor}").text.count("<tr>") == 1 + 5
    assert "Nothing rests" in visitor.text("/azolla/pause-states?reason=RUN_COMPLETE")
    assert OWN == "warehouse"


@pytest.mark.parametrize("path", ["/events", "/captures", "/objectives", "/pause-states"])
def test_a_cursor_nobody_gave_is_refused(visitor: Visitor, path: str) -> None:
    assert visitor.get(f"/azolla{path}?cursor=nonsense").status == 422
