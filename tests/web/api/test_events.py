"""Server-sent events: what changes is told, to a bounded number of listeners, until it is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPConnection, HTTPResponse
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from sqlalchemy import update

from headway.domain.execution import ExecutionState, Outcome
from headway.runner.outcome import failed
from headway.store import outcomes
from headway.store.tables import execution
from headway.web import broadcasting
from headway.web.api import events
from headway.web.api.models.overview import SummaryAnswer
from headway.web.app import build_app
from headway.web.broadcasting import MOST_WAITING, Broadcaster, Event, Stream
from headway.web.failures import TooMany
from headway.web.security.access import Access
from headway.web.security.identity import Identity, Scope
from tests.builders import OWNER, Scene, eventually
from tests.web.api.deployment import Deployment
from tests.web.site import Site, listening


def told(stream: Stream) -> list[Event | None]:
    """Everything put into *stream* so far, once its loop has had its turn."""
    stream.loop.run_until_complete(asyncio.sleep(0))
    found = []
    while not stream.events.empty():
        found.append(stream.events.get_nowait())
    return found


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def running(deployment: Deployment) -> int:
    items = deployment.read.get("/executions?state=in_progress").json()["items"]
    return int(items[0]["id"])


def finish(deployment: Deployment, execution_id: int) -> None:
    with deployment.scene.store.writing() as tx:
        assert outcomes.finish(tx, OWNER, {execution_id: Outcome(ExecutionState.COMPLETED)})


def test_one_execution_is_told_until_it_ends(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    number = running(deployment)
    stream = caster.listen(loop, number)
    caster.look()
    [first] = told(stream)
    assert first is not None
    run = deployment.scene.history.executions.detail(number)
    begun = run.execution.started_at
    assert begun is not None
    assert first == Event(
        "execution",
        {
            "id": number,
            "external_id": "extract-users",
            "group_name": "loads",
            "workflow": "load",
            "state": "in_progress",
            "attempt": 1,
            "running_step": "load",
            "progress": None,
            "progress_note": None,
            "cancel_requested": False,
            "started_at": begun.isoformat(),
            "finished_at": None,
            "failure": None,
            "steps": [
                {"name": "load", "started_at": run.steps[0].started_at.isoformat(), "seconds": None}
            ],
        },
    )
    caster.look()
    assert told(stream) == []
    deployment.scene.app.cancel(execution=number)
    caster.look()
    [asked] = told(stream)
    assert asked is not None and asked.data["cancel_requested"] is True
    finish(deployment, number)
    caster.look()
    last, end, over = told(stream)
    assert last is not None and end is not None
    assert last.data["state"] == "completed"
    assert (end, over) == (Event("end", {"id": number}), None)
    caster.look()
    assert told(stream) == [], "it is closed"


def test_everything_that_moves_is_told(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    stream = caster.listen(loop)
    caster.look()
    [summary] = told(stream)
    assert summary is not None
    assert (summary.name, summary.data["running"]) == ("summary", 1)
    assert summary.data.keys() == SummaryAnswer.model_fields.keys() - {"now"}
    deployment.scene.dispatch()
    caster.look()
    moved = [event for event in told(stream) if event]
    assert [event.name for event in moved] == ["summary", "execution", "execution"]
    assert [event.data["id"] for event in moved[1:]] == [7, 8]
    assert moved[1].data == {
        "id": 7,
        "external_id": "odd/name 100%",
        "group_name": "odd/group",
        "workflow": "load",
        "state": "pending",
        "attempt": 1,
        "running_step": None,
        "progress": None,
        "progress_note": None,
        "cancel_requested": False,
        "started_at": None,
        "finished_at": None,
        "failure": None,
    }
    caster.look()
    assert told(stream) == []


@pytest.mark.parametrize(
    "change",
    [
        {"progress": 0.5},
        {"progress_note": "half of it"},
        {"running_step": "next"},
        {"cancel_requested": True},
    ],
)
def test_whatever_changes_of_a_run_is_told(
    deployment: Deployment, loop: asyncio.AbstractEventLoop, change: dict[str, object]
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    stream, number = caster.listen(loop), running(deployment)
    caster.look()
    told(stream)
    with deployment.scene.store.writing() as tx:
        tx.connection.execute(update(execution).where(execution.c.id == number).values(change))
    caster.look()
    [event] = told(stream)
    assert event is not None
    assert (event.name, event.data["id"]) == ("execution", number)
    assert change.items() <= event.data.items()


def test_a_run_that_fails_is_told_with_its_failure(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    number = running(deployment)
    everything, own = caster.listen(loop), caster.listen(loop, number)
    caster.look()
    told(everything), told(own)
    with deployment.scene.store.writing() as tx:
        assert outcomes.finish(tx, OWNER, {number: failed("load", ValueError("no rows"))})
    caster.look()
    for stream in (everything, own):
        [event] = [one for one in told(stream) if one and one.name == "execution"]
        assert event.data["failure"] == "load: ValueError: no rows"
        assert event.data["finished_at"] is not None


def test_an_execution_that_is_gone_is_over(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    stream = caster.listen(loop, 4711)
    caster.look()
    assert told(stream) == [Event("end", {"id": 4711}), None]


def test_more_than_is_told_at_once_is_said_to_be_missed(
    deployment: Deployment, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcasting, "MOST_PER_PAGE", 2)
    scene = deployment.scene
    caster = Broadcaster(scene.history, by_itself=False)
    stream = caster.listen(loop)
    caster.look()
    assert [event.name for event in told(stream) if event] == ["summary"]
    scene.pending("load", '{"name": "x"}')
    caster.look()
    assert [event.name for event in told(stream) if event] == ["summary", "execution"]
    for _ in range(4):
        scene.pending("load", '{"name": "x"}')
    caster.look()
    missed = [event for event in told(stream) if event and event.name == "missed"]
    assert missed == [
        Event("missed", {"sentence": "more has changed than is told; look again"}),
    ]


def test_a_run_that_goes_on_is_told_however_many_have_ended_after_it(
    deployment: Deployment, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcasting, "MOST_PER_PAGE", 2)
    number = running(deployment)
    for _ in range(2):
        deployment.scene.pending("load", '{"name": "x"}')
    deployment.scene.run()
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    stream = caster.listen(loop)
    caster.look()
    told(stream)
    deployment.scene.app.cancel(execution=number)
    caster.look()
    moved = [event.data for event in told(stream) if event and event.name == "execution"]
    assert [(run["id"], run["cancel_requested"]) for run in moved] == [(number, True)]


def test_what_happened_without_listeners_is_no_news(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    before = caster.listen(loop)
    caster.look()
    caster.close(before)
    caster.look()
    deployment.scene.dispatch()
    later = caster.listen(loop)
    caster.look()
    assert [event.name for event in told(later) if event] == ["summary"]
    assert [event.name for event in told(before) if event] == ["summary"], "it was closed"


def test_a_second_listener_is_told_how_things_stand_too(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    first = caster.listen(loop)
    caster.look()
    second, own = caster.listen(loop), caster.listen(loop, running(deployment))
    caster.look()
    assert [event.name for event in told(first) if event] == ["summary"]
    assert [event.name for event in told(second) if event] == ["summary"]
    assert [event.name for event in told(own) if event] == ["execution"]


def test_it_looks_again_after_the_database_was_away(
    deployment: Deployment, loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    caster = Broadcaster(deployment.scene.history, every=0.01)
    with deployment.scene.store.writing() as tx:
        tx.connection.exec_driver_sql("ALTER TABLE headway_work_queue RENAME TO away")
    stream = caster.listen(loop)
    eventually(lambda: "cannot tell what changes" in caplog.text)
    assert told(stream) == []
    with deployment.scene.store.writing() as tx:
        tx.connection.exec_driver_sql("ALTER TABLE away RENAME TO headway_work_queue")
    wait_until_told(stream)
    caster.stop()
    summary, over = told(stream)
    assert summary is not None and (summary.name, over) == ("summary", None)


def test_it_looks_only_while_there_are_listeners(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, every=0.01)
    for _ in range(2):
        stream = caster.listen(loop)
        wait_until_told(stream)
        caster.close(stream)
        eventually(lambda: "headway-broadcaster" not in {one.name for one in enumerate_threads()})


def wait_until_told(stream: Stream) -> None:
    eventually(lambda: stream.told is not None)


def test_streams_are_bounded(deployment: Deployment, loop: asyncio.AbstractEventLoop) -> None:
    caster = Broadcaster(deployment.scene.history, most=2, by_itself=False)
    first, _ = caster.listen(loop), caster.listen(loop)
    with pytest.raises(TooMany, match="2 streams are open already; close one") as refused:
        caster.listen(loop)
    assert refused.value.seconds == 5
    caster.close(first)
    caster.listen(loop)


def test_a_listener_who_is_too_slow_is_cut_off(loop: asyncio.AbstractEventLoop) -> None:
    stream = Stream(loop)
    for number in range(2 * MOST_WAITING):
        stream.put(Event("execution", {"id": number}))
    found = told(stream)
    assert len(found) == MOST_WAITING + 1
    assert found[-1] is None


def open_stream(deployment: Deployment, path: str) -> AbstractContextManager[HTTPResponse]:
    return stream_of(deployment.site, path)


@contextmanager
def stream_of(site: Site, path: str) -> Iterator[HTTPResponse]:
    line = HTTPConnection("127.0.0.1", site.port, timeout=20)
    try:
        line.request("GET", f"/api/v1{path}", headers={"authorization": "Bearer read"})
        yield line.getresponse()
    finally:
        line.close()


def next_event(answer: HTTPResponse) -> tuple[str, Any]:
    name = ""
    while True:
        line = answer.readline().decode()
        assert line, "the stream has ended"
        if line.startswith("event: "):
            name = line.removeprefix("event: ").strip()
        elif line.startswith("data: "):
            return name, json.loads(line.removeprefix("data: "))


def test_a_browser_sees_an_execution_end(deployment: Deployment) -> None:
    number = running(deployment)
    with open_stream(deployment, f"/executions/{number}/events") as answer:
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.readline() == b"retry: 2000\n"
        assert next_event(answer)[1]["state"] == "in_progress"
        finish(deployment, number)
        name, data = next_event(answer)
        assert (name, data["state"]) == ("execution", "completed")
        assert next_event(answer)[0] == "end"
        assert answer.read() in (b"", b"\n")


def test_how_everything_stands_is_told_at_once(deployment: Deployment) -> None:
    with open_stream(deployment, "/events") as answer:
        name, data = next_event(answer)
    assert name == "summary"
    assert data.keys() == SummaryAnswer.model_fields.keys() - {"now"}
    assert data["running"] == 1


def test_a_listener_who_goes_makes_room_for_the_next(sqlite_url: str) -> None:
    access = Access(lambda request: Identity("rita", {Scope.READ}))
    with Scene(sqlite_url) as scene:
        app = build_app(scene.app, scene.store, access)
        caster = Broadcaster(scene.history, every=0.01, most=1)
        app.state.surface.__dict__["broadcaster"] = caster
        with listening(app) as site:
            with stream_of(site, "/events") as answer:
                assert next_event(answer)[0] == "summary"
                refused = site.get("/api/v1/events")
                assert (refused.status, refused.headers["retry-after"]) == (429, "5")

            def has_room() -> bool:
                with stream_of(site, "/events") as answer:
                    return answer.status == 200

            eventually(has_room)
            caster.stop()


def test_a_silent_stream_is_kept_alive(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "BEAT_SECONDS", 0.01)
    with open_stream(deployment, "/events") as answer:
        while not (line := answer.readline()).startswith(b": "):
            assert line, "the stream has ended"
