"""Server-sent events: what changes is told, to a bounded number of listeners, until it is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from headway.domain.execution import ExecutionState, Outcome
from headway.store import outcomes
from headway.web.api import events
from headway.web.api.models.overview import SummaryAnswer
from headway.web.broadcasting import MOST_WAITING, Broadcaster, Event, Stream
from headway.web.failures import TooMany
from tests.builders import OWNER
from tests.web.api.deployment import Deployment


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
    assert (first.name, first.data["state"]) == ("execution", "in_progress")
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
    assert (end.name, over) == ("end", None)


def test_everything_that_moves_is_told(
    deployment: Deployment, loop: asyncio.AbstractEventLoop
) -> None:
    caster = Broadcaster(deployment.scene.history, by_itself=False)
    stream = caster.listen(loop)
    caster.look()
    [summary] = told(stream)
    assert summary is not None
    assert (summary.name, summary.data["running"]) == ("summary", 1)
    deployment.scene.dispatch()
    caster.look()
    names = [event.name for event in told(stream) if event]
    assert names == ["summary", "execution", "execution"]
    caster.look()
    assert told(stream) == []


def test_streams_are_bounded(deployment: Deployment, loop: asyncio.AbstractEventLoop) -> None:
    caster = Broadcaster(deployment.scene.history, most=2, by_itself=False)
    first, _ = caster.listen(loop), caster.listen(loop)
    with pytest.raises(TooMany):
        caster.listen(loop)
    caster.close(first)
    caster.listen(loop)


def test_a_listener_who_is_too_slow_is_cut_off(loop: asyncio.AbstractEventLoop) -> None:
    stream = Stream(loop)
    for number in range(2 * MOST_WAITING):
        stream.put(Event("execution", {"id": number}))
    found = told(stream)
    assert len(found) == MOST_WAITING + 1
    assert found[-1] is None


@contextmanager
def open_stream(deployment: Deployment, path: str) -> Iterator[HTTPResponse]:
    line = HTTPConnection("127.0.0.1", deployment.site.port, timeout=20)
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


def test_a_silent_stream_is_kept_alive(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "BEAT_SECONDS", 0.01)
    with open_stream(deployment, "/events") as answer:
        while not (line := answer.readline()).startswith(b": "):
            assert line, "the stream has ended"
