"""Dead letters: what is written of a manifest that failed, who waits, and how they are resolved."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select, update

from headway.domain.dead_letter import DeadLetter, DeadLetterStatus
from headway.store import dead_letters
from headway.store.dead_letters import NewDeadLetter
from headway.store.dispatching import dispatch
from headway.store.engine import Store
from headway.store.tables import dead_letter, work_queue
from tests.store.factories import (
    CANCELLED,
    FAILED,
    NOON,
    Clock,
    a_manifest,
    change_manifest,
    dead_letter_for,
    declare,
    manifest_ids,
    queue,
    ran,
    rows_of,
)

RESOLVED = {"status": "acknowledged", "resolved_at": NOON, "resolution_note": "seen"}


def create(store: Store, *letters: NewDeadLetter) -> list[int]:
    with store.writing() as tx:
        return dead_letters.create(tx, letters)


def awaiting(store: Store) -> list[DeadLetter]:
    with store.reading() as tx:
        return dead_letters.awaiting(tx)


def by_manifest(store: Store) -> dict[int, dict[str, Any]]:
    return {row["manifest_id"]: row for row in rows_of(store, dead_letter)}


def letters_of(store: Store, *names: str) -> dict[str, int]:
    """A dead letter for each of these manifests; their ids by external id."""
    for name in names:
        dead_letter_for(store, name)
    written, ids = by_manifest(store), manifest_ids(store)
    return {name: written[ids[name]]["id"] for name in names}


def test_a_dead_letter_has_the_input_of_the_last_run_that_failed(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, a_manifest("extract", input="[1]", input_type="list[int]"), "load", "new")
    ran(store, "extract", FAILED)
    failed = ran(store, "extract", FAILED, input="[2]")
    ran(store, "load", FAILED)
    ran(store, "extract", CANCELLED, input="[3]")
    moment = clock.advance(hours=1)
    one = NewDeadLetter(ids["extract"], "max retries exceeded", 4)
    two = NewDeadLetter(ids["new"], "without any run", 1)
    assert sorted(create(store, one, two)) == sorted([ids["extract"], ids["new"]])
    found = by_manifest(store)
    alike = {
        "status": "awaiting_intervention",
        "dead_lettered_at": moment,
        "resolved_at": None,
        "resolution_note": None,
        "retry_execution_id": None,
    }
    assert found[ids["extract"]] == alike | {
        "id": found[ids["extract"]]["id"],
        "manifest_id": ids["extract"],
        "reason": "max retries exceeded",
        "failures": 4,
        "execution_id": failed.id,
        "input": "[2]",
    }
    assert found[ids["new"]] == alike | {
        "id": found[ids["new"]]["id"],
        "manifest_id": ids["new"],
        "reason": "without any run",
        "failures": 1,
        "execution_id": None,
        "input": None,
    }


def test_what_waits_already_or_was_removed_gets_no_dead_letter(store: Store) -> None:
    ids = declare(store, "waits", "removed", "resolved")
    letters_of(store, "waits", "resolved")
    with store.writing() as tx:
        this = dead_letter.c.manifest_id == ids["resolved"]
        tx.connection.execute(update(dead_letter).where(this).values(RESOLVED))
    change_manifest(store, "removed", removed_at=NOON)
    assert create(store, *(NewDeadLetter(key, "again", 1) for key in ids.values())) == [
        ids["resolved"]
    ]


def test_what_waits_is_told_oldest_first_and_in_full(store: Store, clock: Clock) -> None:
    ids = declare(store, "first", "second", "removed", "resolved")
    keys = letters_of(store, "second")
    moment = clock.advance(minutes=1)
    keys |= letters_of(store, "first", "removed", "resolved")
    change_manifest(store, "removed", removed_at=NOON)
    with store.writing() as tx:
        this = dead_letter.c.id == keys["resolved"]
        tx.connection.execute(update(dead_letter).where(this).values(RESOLVED))

    def told(name: str, at: Any) -> DeadLetter:
        status = DeadLetterStatus.AWAITING_INTERVENTION
        about = ("max retries exceeded", 3, None, None)
        return DeadLetter(keys[name], ids[name], name, status, at, *about)

    assert awaiting(store) == [told("second", NOON), told("first", moment)]
    with store.reading() as tx:
        waits = select(dead_letter.c.id).where(dead_letters.waits()).order_by(dead_letter.c.id)
        found = tx.connection.execute(waits).scalars().all()
    assert found == [keys["second"], keys["first"]]


def test_only_what_waits_of_the_removed_is_resolved_with_the_reason(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, "removed", "kept")
    with store.writing() as tx:
        row = {"manifest_id": ids["removed"], "reason": "old", "failures": 1}
        over = row | RESOLVED | {"dead_lettered_at": NOON}
        tx.connection.execute(insert(dead_letter).values(over))
    keys = letters_of(store, "removed", "kept")
    before = {row["id"]: row for row in rows_of(store, dead_letter)}
    moment = clock.advance(hours=1)
    with store.writing() as tx:
        dead_letters.resolve_of_removed(tx, [ids["removed"]], "its batch shrank")
    changed = {
        "status": "acknowledged",
        "resolved_at": moment,
        "resolution_note": "its batch shrank",
    }
    expected = before | {keys["removed"]: before[keys["removed"]] | changed}
    assert {row["id"]: row for row in rows_of(store, dead_letter)} == expected


def test_what_was_left_behind_is_resolved_in_portions_oldest_first(store: Store) -> None:
    names = ("one", "kept", "two", "three")
    declare(store, *names)
    keys = letters_of(store, *names)
    for name in ("one", "two", "three"):
        change_manifest(store, name, removed_at=NOON)

    def resolve() -> None:
        with store.writing() as tx:
            dead_letters.resolve_left_behind(tx, 2)

    def notes() -> dict[int, str]:
        return {row["id"]: row["resolution_note"] for row in rows_of(store, dead_letter)}

    removed = "the manifest was removed"
    resolve()
    expected = dict.fromkeys(keys.values()) | {keys["one"]: removed, keys["two"]: removed}
    assert notes() == expected
    resolve()
    assert notes() == expected | {keys["three"]: removed}


def test_each_dead_letter_is_linked_with_the_run_that_retries_it(store: Store) -> None:
    names = ("one", "two", "other")
    declare(store, *names)
    keys = letters_of(store, *names)
    for _ in range(3):
        ran(store, "other")
    entries = {name: queue(store, name) for name in names}
    with store.writing() as tx:
        for name in ("one", "two"):
            this = work_queue.c.id == entries[name]
            values = {"dead_letter_id": keys[name]}
            tx.connection.execute(update(work_queue).where(this).values(values))
        made = dispatch(tx, list(entries.values()))
    retried = {row["id"]: row["retry_execution_id"] for row in rows_of(store, dead_letter)}
    assert retried == {
        keys["one"]: made[entries["one"]],
        keys["two"]: made[entries["two"]],
        keys["other"]: None,
    }
