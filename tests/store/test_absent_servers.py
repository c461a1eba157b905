"""Task servers that do not answer are on record as long as they are asked in vain."""

from __future__ import annotations

from datetime import timedelta

from headway.store.absent_servers import (
    REASON_LIMIT,
    AbsentServer,
    absent_servers,
    note_absent,
    note_present,
)
from headway.store.engine import Store
from headway.store.marks import read_mark, write_mark
from tests.store.factories import NOON, Clock


def asked_in_vain(store: Store, name: str, reason: str = "no route") -> None:
    with store.writing() as tx:
        note_absent(tx, name, reason)


def known(store: Store) -> dict[str, AbsentServer]:
    with store.reading() as tx:
        return absent_servers(tx)


def test_a_server_is_absent_since_it_was_first_asked_in_vain(store: Store, clock: Clock) -> None:
    asked_in_vain(store, "celery", "no route")
    clock.advance(seconds=20)
    asked_in_vain(store, "other")
    asked_in_vain(store, "celery", "connection refused")
    later = clock.now
    assert known(store) == {
        "celery": AbsentServer(NOON, later, "connection refused"),
        "other": AbsentServer(later, later, "no route"),
    }
    clock.advance(seconds=20)
    asked_in_vain(store, "celery")
    assert known(store)["celery"] == AbsentServer(NOON, clock.now, "no route")


def test_what_has_not_been_said_for_half_a_minute_counts_no_more(
    store: Store, clock: Clock
) -> None:
    asked_in_vain(store, "celery")
    clock.now += timedelta(seconds=30) - timedelta(microseconds=1)
    assert list(known(store)) == ["celery"]
    clock.now += timedelta(microseconds=1)
    assert known(store) == {}
    asked_in_vain(store, "celery")
    assert known(store)["celery"].since == clock.now


def test_a_server_that_answers_again_is_forgotten_and_no_other(store: Store) -> None:
    for name in ("celery", "other"):
        asked_in_vain(store, name)
    with store.writing() as tx:
        write_mark(tx, "celery", "another fact")
        note_present(tx, "celery")
        assert read_mark(tx, "celery") == "another fact"
    assert list(known(store)) == ["other"]


def test_a_reason_can_be_shown_whatever_the_server_said(store: Store) -> None:
    asked_in_vain(store, "celery", "no\x00" + "x" * 5000)
    reason = known(store)["celery"].reason
    assert reason.startswith(r"no\x00x") and len(reason) <= REASON_LIMIT
