"""The federation in the dashboard: the page, requests, peers, captures, objectives, pauses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from headway.domain.azolla.artifacts import PauseReason, ResponseStatus
from headway.store import events
from headway.store.tables import audit
from tests.federation.azolla import OWN, Azolla, answering, objective, pause, refusing
from tests.federation.sites import write_registry
from tests.web.parts import forms, items, links, pressed, rows, said
from tests.web.site import Answered
from tests.web.visiting import Visitor, visiting

XSS = "<script>alert(1)</script>"

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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
    last = visitor.get(f"/azolla/pause-states?cursor={cursor}").text
    assert last.count("<tr>") == 1 + 5
    assert said(last, "pauses").endswith("5 pause states on this page First page")
    assert "Nothing rests" in visitor.text("/azolla/pause-states?reason=RUN_COMPLETE")
    assert OWN == "warehouse"


@pytest.mark.parametrize("path", ["/events", "/captures", "/objectives", "/pause-states"])
def test_a_cursor_nobody_gave_is_refused(visitor: Visitor, path: str) -> None:
    assert visitor.get(f"/azolla{path}?cursor=nonsense").status == 422


def told(visitor: Visitor, answer: Answered) -> tuple[str, str, str]:
    """Where an answer leads to, and what is said there in which tone."""
    assert answer.status == 303, answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    place = answer.headers["location"]
    page = visitor.site.get(place, x_scope=visitor.scope, cookie=cookie).text
    [(kind, text)] = re.findall(r'class="toast is-(\w+)".*?<p>([^<]+)</p>', page, re.S)
    return place, unescape(text), kind


@on_sqlite
def test_everything_that_is_done_is_told(azolla: Azolla, visitor: Visitor) -> None:
    def done(path: str, **fields: str) -> tuple[str, str, str]:
        return told(visitor, visitor.post(f"/azolla/{path}", on="/azolla", **fields))

    assert done("request") == (
        "/azolla", "All deployments are being asked; the page appears here.", "ok",
    )  # fmt: skip
    captures = "/azolla/captures"
    assert done("captures", text="look") == (
        captures, "The note is kept until somebody has sorted it.", "ok",
    )  # fmt: skip
    [note] = azolla.app.azolla.captures()
    assert done("captures/process") == (captures, "Nothing was chosen.", "ok")
    assert done("captures/process", capture=note.capture_id) == (captures, "1 sorted.", "ok")
    here = "/azolla/objectives"
    assert done("objectives", title="clean up") == (here, "The objective was added.", "ok")
    [one] = [it for it in azolla.app.azolla.objectives() if it.objective_id != "standing"]
    assert done(f"objectives/{one.objective_id}", urgency="4") == (
        here, "The objective was changed.", "ok",
    )  # fmt: skip
    block = {"kind": "USER_INPUT", "description": "which?"}
    assert done(f"objectives/{one.objective_id}/block", **block) == (
        here, "It is blocked until that is resolved.", "ok",
    )  # fmt: skip
    [blocked] = azolla.app.azolla.objectives(status="BLOCKED")
    blocker = blocked.blocked_on[0]
    assert (blocker.kind, blocker.description) == ("USER_INPUT", "which?")
    assert done(f"blockers/{blocker.blocker_id}/resolve") == (
        here, "The blocker is resolved.", "ok",
    )  # fmt: skip
    event = azolla.request()
    with azolla.store.writing() as tx:
        events.park(tx, event)
    assert done(f"events/{event}/unpark") == (
        "/azolla/events", f"{event} is back in the line.", "ok",
    )  # fmt: skip
    assert done(f"events/{event}/unpark")[::2] == ("/azolla/events", "error")
    assert done("objectives", title="")[::2] == (here, "error")


@on_sqlite
def test_an_objective_keeps_all_that_was_filled_in_and_changed(
    azolla: Azolla, visitor: Visitor
) -> None:
    here = "/azolla/objectives"
    fields = {"title": "clean up", "acceptance_criteria": "no rows", "urgency": "3"}
    visitor.post(here, on=here, **fields)
    [one] = [it for it in azolla.app.azolla.objectives() if it.objective_id != "standing"]
    assert (one.title, one.acceptance_criteria, one.urgency, one.importance) == (
        "clean up", "no rows", 3, 0,
    )  # fmt: skip
    visitor.post(f"{here}/{one.objective_id}", on=here, importance="4")
    [one] = [it for it in azolla.app.azolla.objectives() if it.objective_id != "standing"]
    assert (one.urgency, one.importance, one.status) == (3, 4, "NEW")
    page = visitor.get(here).text
    shown = next(one for one in items(page, "objectives") if "clean up" in one)
    assert shown.startswith("clean up new Reached when: no rows")
    degrees = re.findall(r'aria-label="(\w+ \d of 4)"', page)
    assert {"Urgency 3 of 4", "Importance 4 of 4"} <= set(degrees)
    urgency = re.findall(r'aria-label="Urgency 3 of 4">.*?</svg>', page, re.S)[0]
    assert (urgency.count("degree-on"), urgency.count("degree-off")) == (3, 1)
    for odd in ("4321", "٣", "-1"):
        answer = visitor.post(f"{here}/{one.objective_id}", on=here, urgency=odd)
        assert told(visitor, answer)[2] == "error"


@on_sqlite
def test_an_objective_offers_what_can_be_done_about_it(azolla: Azolla, visitor: Visitor) -> None:
    here = "/azolla/objectives"
    visitor.post(here, on=here, title="clean up")
    [one] = [it for it in azolla.app.azolla.objectives() if it.objective_id != "standing"]

    def offered(query: str = "") -> list[str]:
        page = visitor.get(f"{here}{query}").text
        return re.findall(r'name="status" value="(\w+)"', page)

    assert offered() == ["IN_PROGRESS", "DONE"], "none of the standing objective"
    visitor.post(f"{here}/{one.objective_id}", on=here, status="IN_PROGRESS")
    assert offered() == ["DONE"]
    visitor.post(f"{here}/{one.objective_id}", on=here, status="DONE")
    assert offered("?status=all") == ["TODO"]
    assert f"{here}/{one.objective_id}/block" not in forms(visitor.get(f"{here}?status=all").text)
    read = visitor.as_("read").get(here).text
    assert forms(read) == []
    assert "standing" in said(read, "objectives")


@on_sqlite
@pytest.mark.parametrize(
    ("query", "chip", "titles"),
    [
        ("", "Open", ["keep warehouse going", "open"]),
        ("?status=DONE", "Done", ["done"]),
        ("?status=NEW", "New", ["open"]),
        ("?status=all", "All", ["done", "keep warehouse going", "open"]),
    ],
)
def test_objectives_are_found_by_their_status(
    azolla: Azolla, visitor: Visitor, query: str, chip: str, titles: list[str]
) -> None:
    azolla.app.azolla.objective("open")
    done = azolla.app.azolla.objective("done")
    azolla.app.azolla.update(done.objective_id, status="DONE")
    page = visitor.get(f"/azolla/objectives{query}").text
    found = re.findall(r'<div class="head-title"><strong>([^<]*)<', page)
    assert sorted(found) == titles
    assert chip in pressed(page)


@on_sqlite
@pytest.mark.parametrize(
    ("query", "chip", "notes"),
    [
        ("", "Waiting", ["waits"]),
        ("?status=PROCESSED", "Sorted", ["sorted"]),
        ("?status=all", "All", ["sorted", "waits"]),
        ("?status=odd", "All", ["sorted", "waits"]),
    ],
)
def test_captures_are_found_by_whether_they_wait(
    azolla: Azolla, visitor: Visitor, query: str, chip: str, notes: list[str]
) -> None:
    for text in ("sorted", "waits"):
        visitor.post("/azolla/captures", on="/azolla/captures", text=text)
    first = next(one for one in azolla.app.azolla.captures() if one.raw_content == "sorted")
    azolla.app.azolla.mark_processed(first.capture_id)
    page = visitor.get(f"/azolla/captures{query}").text
    assert sorted(re.findall(r'class="capture-text">([^<]*)<', page)) == notes
    assert chip in pressed(page)
    assert ("/azolla/captures/process" in forms(page)) is ("waits" in notes)
    read = visitor.as_("read").get(f"/azolla/captures{query}").text
    assert forms(read) == []


@on_sqlite
def test_pause_states_tell_why_and_what_to_do(azolla: Azolla, visitor: Visitor) -> None:
    azolla.pause("p1", "requeue it", "tell finance")
    azolla.pause("p2", "look at it", reason=PauseReason.BUDGET_EXHAUSTED)
    page = visitor.get("/azolla/pause-states").text
    assert sorted(row[:3] for row in rows(page)) == [
        ["failed", "requeue it then: tell finance", "standing"],
        ["out of time", "look at it", "standing"],
    ]
    late = visitor.get("/azolla/pause-states?reason=BUDGET_EXHAUSTED").text
    assert [row[0] for row in rows(late)] == ["out of time"]
    assert pressed(late) == ["Pause states", "Out of time"]
    assert pressed(page) == ["Pause states", "All"]
    assert len(rows(visitor.get("/azolla/pause-states?reason=odd").text)) == 2


@on_sqlite
def test_requests_tell_what_has_become_of_them(azolla: Azolla, visitor: Visitor) -> None:
    done = built(azolla)
    parked = azolla.request()
    with azolla.store.writing() as tx:
        events.park(tx, parked)
    page = visitor.get("/azolla/events").text
    cells = {row[1].split()[0]: row[2:] for row in rows(page)}
    assert cells[done][0] == "scheduled"
    assert cells[parked][0] == "parked" and cells[parked][2] != "–"
    assert cells[parked][3] == "Try again" and cells[done][2] == "–"
    assert (done, f"/azolla?event={done}") in links(page)
    only = visitor.get("/azolla/events?state=parked").text
    assert [row[1].split()[0] for row in rows(only)] == [parked]
    assert "Parked" in pressed(only) and "All" in pressed(page)
    assert "Try again" not in said(visitor.as_("read").get("/azolla/events").text, "main")


@on_sqlite
def test_the_page_counts_captures_and_ranks_what_waits(azolla: Azolla, visitor: Visitor) -> None:
    azolla.capture("c1")
    built(azolla)
    page = visitor.get("/azolla").text
    assert "1 capture waited to be sorted." in said(page, "session")
    table = rows(page, "session")
    assert [row[0] for row in table] == [f"{one}" for one in range(1, len(table) + 1)]
    assert table[0][1:3] == ["sales", "requeue load-orders then: tell finance"]
    assert said(page, "whole-page") and "as seen by warehouse" in said(page, "session")
    unknown = visitor.text("/azolla?event=nothing")
    assert "No page of this request" in unknown


@on_sqlite
def test_peers_are_listed_with_what_they_may_read(azolla: Azolla, visitor: Visitor) -> None:
    page = visitor.get("/azolla/peers").text
    assert rows(page)[0][:4] == [
        "warehouse this deployment", "–", "task-management", "objective, pause state",
    ]  # fmt: skip
    assert {row[0] for row in rows(page)} == {"warehouse this deployment", "sales", "patches"}
    assert {row[-1] for row in rows(page)} == {"never asked"}
    built(azolla)
    asked = {row[0].split()[0]: row[-1] for row in rows(visitor.get("/azolla/peers").text)}
    assert asked["sales"].startswith("answered 1 pause state, 1 objective, ")
    assert asked["patches"].startswith("denied")
