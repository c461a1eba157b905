"""Entries that wait for a later time: refused ones, resting ones, and when they ripen."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from headway.domain.work_queue import RestingTimes, Source
from headway.store import delays, work_queue
from headway.store.engine import Store
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    NOON,
    Clock,
    change_manifest,
    declare,
    queue,
    queue_ad_hoc,
    rows_of,
)

RESTING = '[{"kind": "hours"}]'
SOON, LATER = NOON + timedelta(minutes=5), NOON + timedelta(hours=1)


def rows(store: Store) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in rows_of(store, queue_table)}


def cancel(store: Store, name: str, key: int) -> None:
    with store.writing() as tx:
        assert work_queue.cancel_queued(tx, [key], f"{name} is not wanted") == 1


def next_at(store: Store) -> datetime | None:
    with store.reading() as tx:
        return delays.next_scheduled_at(tx)


def ripen(store: Store, limit: int = 10) -> int:
    with store.writing() as tx:
        return delays.ripen(tx, limit)


def test_a_refused_entry_is_left_alone_for_a_pause_and_counted(store: Store) -> None:
    ids = declare(store, "extract", "ended")
    refused, other = queue(store), queue_ad_hoc(store)
    ended = queue(store, "ended")
    cancel(store, "ended", ids["ended"])
    before = rows(store)
    with store.writing() as tx:
        delays.put_off(tx, [refused, ended], timedelta(minutes=5))
    changed = {"dispatch_attempts": 1, "scheduled_at": SOON, "delayed": True}
    assert rows(store) == before | {refused: before[refused] | changed}
    with store.writing() as tx:
        delays.put_off(tx, [refused], timedelta(minutes=10))
    assert rows(store)[refused]["dispatch_attempts"] == 2
    assert rows(store)[other] == before[other]


def test_scheduled_entries_rest_by_the_exclusions_and_the_zone_of_their_manifest(
    store: Store,
) -> None:
    names = ("utc", "berlin", "free", "triggered", "put off", "sooner", "ended")
    ids = declare(store, *names)
    for name in names:
        zone = "Europe/Berlin" if name == "berlin" else None
        exclusions = None if name == "free" else RESTING
        change_manifest(store, name, exclusions=exclusions, time_zone=zone)
    changes: dict[str, dict[str, Any]] = {
        "triggered": {"source": Source.TRIGGER},
        "put off": {"scheduled_at": LATER},
        "sooner": {"scheduled_at": NOON},
    }
    entries = {name: queue(store, name, **changes.get(name, {})) for name in names}
    cancel(store, "ended", ids["ended"])
    before = rows(store)
    until = {RestingTimes(RESTING, "UTC"): SOON}
    with store.writing() as tx:
        delays.rest(tx, until)
    resting = {"scheduled_at": SOON, "delayed": True}
    expected = before | {key: before[key] | resting for key in (entries["utc"], entries["sooner"])}
    assert rows(store) == expected
    with store.writing() as tx:
        delays.rest(tx, {RestingTimes(RESTING, "Europe/Berlin"): LATER})
    berlin = entries["berlin"]
    changed = {"scheduled_at": LATER, "delayed": True}
    assert rows(store) == expected | {berlin: before[berlin] | changed}


def test_what_is_due_ripens_in_portions_the_longest_waiting_first(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, "ended")
    late, soon, first = (
        queue_ad_hoc(store, scheduled_at=moment)
        for moment in (LATER, SOON, NOON + timedelta(minutes=1))
    )
    queue(store, "ended", scheduled_at=NOON + timedelta(seconds=1))
    cancel(store, "ended", ids["ended"])
    assert (ripen(store), next_at(store)) == (0, NOON + timedelta(minutes=1))
    clock.now = SOON
    assert next_at(store) == LATER, "what is due is not put off once more"
    assert [ripen(store, 1), rows(store)[first]["delayed"], rows(store)[soon]["delayed"]] == [
        1,
        False,
        True,
    ]
    assert [ripen(store), ripen(store)] == [1, 0]
    delayed = {key: row["delayed"] for key, row in rows(store).items() if row["ended_at"] is None}
    assert delayed == {late: True, soon: False, first: False}
    assert rows(store)[first]["scheduled_at"] == NOON + timedelta(minutes=1)
    clock.now = LATER
    assert (ripen(store), next_at(store)) == (1, None)
