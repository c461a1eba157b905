"""Captures: counted while they wait, marked once, newest first."""

from __future__ import annotations

from functools import partial

from headway.domain.azolla.artifacts import CaptureBuffer, CaptureStatus
from headway.store import captures
from headway.store.engine import Store
from tests.store.factories import NOON, Clock, at_once


def add(store: Store, *names: str) -> None:
    with store.writing() as tx:
        for name in names:
            one = CaptureBuffer(
                capture_id=name,
                azolla_id="warehouse",
                raw_content=f"note {name} \x1b ü",
                source_label="standup",
                created_at=tx.now,
                updated_at=tx.now,
            )
            captures.add(tx, one)


def count(store: Store) -> int:
    with store.reading() as tx:
        return captures.count_pending(tx)


def mark(store: Store, *names: str) -> list[str]:
    with store.writing() as tx:
        return captures.mark_processed(tx, names)


def listed(store: Store, limit: int = 10, *, only_pending: bool = True) -> list[CaptureBuffer]:
    with store.reading() as tx:
        return captures.listed(tx, limit, only_pending=only_pending)


def test_those_that_wait_are_counted(store: Store) -> None:
    assert count(store) == 0
    add(store, "a", "b", "c")
    assert count(store) == 3
    assert mark(store, "b", "nobody") == ["b"]
    assert count(store) == 2
    assert mark(store, "c", "b", "a") == ["a", "c"]


def test_marking_again_changes_nothing(store: Store, clock: Clock) -> None:
    add(store, "a")
    later = clock.advance(hours=1)
    assert mark(store, "a") == ["a"]
    clock.advance(hours=1)
    assert mark(store, "a") == []
    [one] = listed(store, only_pending=False)
    assert (one.status, one.created_at, one.updated_at) == (CaptureStatus.PROCESSED, NOON, later)


def test_of_two_people_one_marks_it(store: Store, second: Store) -> None:
    add(store, "a")
    done = at_once(partial(mark, store, "a"), partial(mark, second, "a"))
    assert sorted(done) == [[], ["a"]]


def test_the_newest_come_first_and_no_more_than_asked_for(store: Store, clock: Clock) -> None:
    for name in "bac":
        add(store, name)
        clock.advance(minutes=1)
    mark(store, "c")
    assert [one.capture_id for one in listed(store)] == ["a", "b"]
    with store.reading() as tx:
        assert captures.listed(tx, 10) == listed(store)
    everything = listed(store, 2, only_pending=False)
    assert [one.capture_id for one in everything] == ["c", "a"]
    assert everything[0].raw_content == "note c \x1b ü"
