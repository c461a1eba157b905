"""Events: announced once, in line from the oldest on, charged, parked and ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.azolla.artifacts import Event, EventType, ResourceType, TerminalReason
from headway.store import claims, events
from headway.store.engine import Store
from headway.store.events import ERROR_LIMIT, KnownEvent
from headway.store.tables import event
from tests.store.factories import ME, NOON, OTHER, Clock, rows_of

ASKED, TICKET = EventType.MANIFEST_REQUESTED, EventType.TICKET_READY
LEASE = timedelta(seconds=30)
OVER = TerminalReason.SCHEDULED


def an_event(name: str, kind: EventType = ASKED, minutes: int = 0) -> Event:
    return Event(
        event_id=name,
        type=kind,
        resource_id=f"about-{name}",
        azolla_id="warehouse",
        created_at=NOON + timedelta(minutes=minutes),
    )


def announce(store: Store, *names: str, kind: EventType = ASKED) -> None:
    """Events a minute apart, in the order of *names*."""
    with store.writing() as tx:
        for number, name in enumerate(names):
            assert events.announce(tx, an_event(name, kind, number))


def claim(store: Store, name: str, owner: str = ME) -> None:
    with store.writing() as tx:
        assert claims.acquire(tx, ResourceType.EVENT, name, owner, LEASE)


def write(store: Store, act: Any, *arguments: Any) -> Any:
    with store.writing() as tx:
        return act(tx, *arguments)


def find(store: Store, name: str = "e") -> KnownEvent:
    with store.reading() as tx:
        found = events.find(tx, name)
    assert found is not None
    return found


def waiting(store: Store, limit: int = 10, kind: EventType = ASKED) -> list[str]:
    with store.reading() as tx:
        return [one.event.event_id for one in events.waiting(tx, kind, limit)]


def test_an_event_is_announced_once(store: Store) -> None:
    announce(store, "e")
    assert not write(store, events.announce, an_event("e", TICKET, 5))
    assert find(store) == KnownEvent(an_event("e"), 0, None, None, None)
    with store.reading() as tx:
        assert events.find(tx, "unknown") is None


def test_the_oldest_that_are_free_come_first(store: Store, clock: Clock) -> None:
    announce(store, "z", "y", "x", "w", "v")
    announce(store, "ticket", kind=TICKET)
    assert waiting(store, 3) == ["z", "y", "x"]
    assert waiting(store, kind=TICKET) == ["ticket"]
    claim(store, "y")
    assert waiting(store, 3) == ["z", "x"], "one that is claimed keeps its place in the line"
    write(store, events.mark_processed, "z", OVER)
    write(store, events.park, "x")
    assert waiting(store) == ["w", "v"]
    clock.now += LEASE
    assert waiting(store) == ["y", "w", "v"]


def test_the_newest_come_first_whatever_became_of_them(store: Store) -> None:
    announce(store, "b", "c", "a")
    write(store, events.mark_processed, "c", OVER)
    write(store, events.park, "a")
    with store.reading() as tx:
        assert [one.event.event_id for one in events.newest(tx, 2)] == ["a", "c"]


def test_an_attempt_is_counted_while_it_lasts_and_of_that_event_alone(store: Store) -> None:
    announce(store, "e", "other")
    for _ in range(3):
        write(store, events.count_attempt, "e")
    write(store, events.uncount_attempt, "e")
    assert (find(store).attempts, find(store, "other").attempts) == (2, 0)
    write(store, events.mark_processed, "e", OVER)
    for change in (events.count_attempt, events.uncount_attempt, events.park):
        write(store, change, "e")
    assert find(store) == KnownEvent(
        an_event("e").model_copy(update={"processed": True}), 2, OVER, None, None
    )


def test_a_failure_is_noted_with_the_event_that_is_held(store: Store, clock: Clock) -> None:
    announce(store, "e", "theirs", "over", "free")
    claim(store, "e")
    claim(store, "theirs", OTHER)
    claim(store, "over")
    write(store, events.mark_processed, "over", OVER)
    write(store, events.note_failure, ME, "no\x00" + "x" * 2000)
    errors = {row["event_id"]: row["last_error"] for row in rows_of(store, event)}
    told = errors.pop("e")
    assert told.startswith(r"no\x00x") and len(told) <= ERROR_LIMIT
    assert errors == {"theirs": None, "over": None, "free": None}
    clock.now += LEASE
    write(store, events.note_failure, ME, "later")
    assert find(store).last_error == told


@pytest.mark.parametrize(
    ("error", "told"), [(None, "whoever worked on it was killed"), ("no answer", "no answer")]
)
def test_an_attempt_without_an_error_was_killed(error: str | None, told: str) -> None:
    assert KnownEvent(an_event("e"), 1, None, None, error).trouble == told


def test_a_parked_event_is_put_back_with_all_its_attempts(store: Store, clock: Clock) -> None:
    announce(store, "e", "other")
    for name in ("e", "other"):
        write(store, events.count_attempt, name)
    assert write(store, events.unpark, "e") is False
    moment = clock.advance(minutes=1)
    write(store, events.park, "e")
    assert find(store) == KnownEvent(an_event("e"), 1, None, moment, None)
    assert write(store, events.unpark, "e") is True
    assert find(store) == KnownEvent(an_event("e"), 0, None, None, None)
    assert (find(store, "other").attempts, waiting(store)) == (1, ["e", "other"])


def test_an_event_ends_once_and_says_why(store: Store) -> None:
    announce(store, "e", "other")
    assert write(store, events.mark_processed, "e", OVER) is True
    assert write(store, events.mark_processed, "e", TerminalReason.BLOCKED) is False
    assert (find(store).terminal_reason, find(store).event.processed) == (OVER, True)
    assert find(store, "other").event.processed is False
