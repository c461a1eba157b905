"""The artifacts of the federation, page by page."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headway.domain.azolla.artifacts import (
    CaptureBuffer,
    CaptureStatus,
    Event,
    EventType,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
    TerminalReason,
)
from headway.domain.azolla.entries import standing
from headway.history import History, Paused
from headway.store import captures, events, objectives, pause_states
from headway.store.engine import Store
from tests.history.test_pages import all_pages
from tests.store.factories import NOON, Clock

MINUTE = timedelta(minutes=1)


def an_event(event_id: str, minutes: int = 0) -> Event:
    return Event(
        event_id=event_id,
        type=EventType.MANIFEST_REQUESTED,
        resource_id=f"resource-{event_id}",
        azolla_id="warehouse",
        created_at=NOON + minutes * MINUTE,
    )


def a_capture(capture_id: str, minutes: int) -> CaptureBuffer:
    return CaptureBuffer(
        capture_id=capture_id,
        azolla_id="warehouse",
        raw_content="look at it",
        source_label="desk",
        status=CaptureStatus.PENDING,
        created_at=NOON + minutes * MINUTE,
        updated_at=NOON,
    )


def a_pause(reason: PauseReason, minutes: int) -> PauseState:
    return PauseState(
        objective_id="standing",
        azolla_id="warehouse",
        reason=reason,
        prioritized_actions=("look at it",),
        created_at=NOON + minutes * MINUTE,
    )


def a_ticket(objective_id: str, minutes: int, status: ObjectiveStatus) -> Objective:
    fields = {
        "objective_id": objective_id,
        "objective_type": ObjectiveType.TICKET,
        "status": status,
        "created_at": NOON - minutes * MINUTE,
        "updated_at": NOON + minutes * MINUTE,
    }
    return standing("warehouse", "clean the tables", NOON).model_copy(update=fields)


@pytest.fixture
def requested(store: Store, clock: Clock) -> list[str]:
    """Requests, newest first: b and a of the same moment, then c, which is parked, and d, which was
    parked and has ended."""
    with store.writing() as tx:
        for event_id, minutes in (("a", 3), ("b", 3), ("c", 2), ("d", 1)):
            events.announce(tx, an_event(event_id, minutes))
        for event_id in ("c", "d"):
            events.park(tx, event_id)
        events.mark_processed(tx, "d", TerminalReason.SCHEDULED)
    return ["b", "a", "c", "d"]


def test_requests_come_newest_first(store: Store, history: History, requested: list[str]) -> None:
    found = all_pages(lambda _, cursor, limit: history.azolla.events(cursor, limit), None, 1)
    assert [one.event.event_id for one in found] == requested
    assert found[1].event == an_event("a", 3)
    assert (found[2].parked_at, found[2].attempts) == (NOON, 0)
    assert (found[3].terminal_reason, found[3].event.processed) == (TerminalReason.SCHEDULED, True)


def test_parked_is_what_waits_for_a_person(
    store: Store, history: History, requested: list[str]
) -> None:
    parked = history.azolla.events(parked=True).items
    assert [one.event.event_id for one in parked] == ["c"]
    assert history.azolla.any_parked()
    with store.writing() as tx:
        events.mark_processed(tx, "c", TerminalReason.SCHEDULED)
    assert not history.azolla.any_parked()
    assert history.azolla.events(parked=True).items == ()


def test_notes_come_newest_first_and_by_their_status(store: Store, history: History) -> None:
    notes = [a_capture(key, minutes) for key, minutes in (("a", 1), ("b", 2), ("c", 2))]
    with store.writing() as tx:
        for one in notes:
            captures.add(tx, one)
        captures.mark_processed(tx, ["b"])
    found = all_pages(lambda _, cursor, limit: history.azolla.captures(cursor, limit), None, 1)
    assert [one.capture_id for one in found] == ["c", "b", "a"]
    assert found[2] == notes[0]
    pending = history.azolla.captures(status=CaptureStatus.PENDING).items
    assert [one.capture_id for one in pending] == ["c", "a"]
    processed = history.azolla.captures(status=CaptureStatus.PROCESSED).items
    assert [one.capture_id for one in processed] == ["b"]


def test_pauses_come_newest_first_and_by_their_reason(store: Store, history: History) -> None:
    pauses = [
        ("a", a_pause(PauseReason.GATE_FAILED, 2)),
        ("b", a_pause(PauseReason.RUN_COMPLETE, 2)),
        ("c", a_pause(PauseReason.GATE_FAILED, 3)),
    ]
    with store.writing() as tx:
        pause_states.add(tx, pauses)
    wanted = [Paused(*pauses[place]) for place in (2, 1, 0)]
    found = all_pages(lambda _, cursor, limit: history.azolla.pause_states(cursor, limit), None, 1)
    assert found == wanted
    failed = history.azolla.pause_states(reason=PauseReason.GATE_FAILED).items
    assert failed == (wanted[0], wanted[2])


def test_objectives_come_by_their_last_touch_and_by_their_status(
    store: Store, history: History
) -> None:
    tickets = [
        a_ticket("a", 2, ObjectiveStatus.TODO),
        a_ticket("b", 2, ObjectiveStatus.DONE),
        a_ticket("c", 3, ObjectiveStatus.NEW),
    ]
    with store.writing() as tx:
        for one in tickets:
            objectives.add(tx, one)
    found = all_pages(lambda _, cursor, limit: history.azolla.objectives(cursor, limit), None, 1)
    assert found == [tickets[2], tickets[1], tickets[0]]
    page = history.azolla.objectives
    assert [one.objective_id for one in page(done=False).items] == ["c", "a"]
    assert [one.objective_id for one in page(status=ObjectiveStatus.DONE).items] == ["b"]
    done = page(status=ObjectiveStatus.DONE, done=False).items
    assert [one.objective_id for one in done] == ["b"]
