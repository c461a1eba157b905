"""Which groups are noted as full or disabled while something of theirs waits."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from headway.domain.manifest import Group
from headway.domain.work_queue import Source
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.shut_groups import note_shut_groups
from headway.store.tables import manifest_group
from tests.store.factories import (
    NOON,
    Clock,
    a_manifest,
    change_group,
    declare,
    dispatched,
    manifest_ids,
    queue,
    rows_of,
    started,
)

HOUR = timedelta(hours=1)


@pytest.fixture
def groups(store: Store) -> Store:
    """Two groups with room for one, of which the first has an entry that waits."""
    declare(
        store,
        *(
            a_manifest(f"{group}-{number}", group=Group(group, 1))
            for group in ("first", "second")
            for number in range(2)
        ),
        groups=[Group("first", 1), Group("second", 1)],
    )
    queue(store, "first-1")
    return store


def noted(store: Store, at_most_every: timedelta = HOUR) -> int:
    with store.writing() as tx:
        return note_shut_groups(tx, at_most_every)


def shut(store: Store) -> dict[str, datetime | None]:
    return {row["name"]: row["last_shut_at"] for row in rows_of(store, manifest_group)}


def test_an_open_group_is_not_noted(groups: Store) -> None:
    assert noted(groups) == 0
    assert shut(groups) == {"first": None, "second": None}


@pytest.mark.parametrize("act", [started, dispatched])
def test_a_full_group_is_noted(groups: Store, clock: Clock, act: object) -> None:
    (started if act is started else dispatched)(groups, "first-0")
    later = clock.advance(minutes=1)
    assert noted(groups) == 1
    assert shut(groups) == {"first": later, "second": None}


def test_a_disabled_group_is_noted(groups: Store) -> None:
    for name in ("first", "second"):
        change_group(groups, name, enabled=False)
    assert noted(groups) == 1
    assert shut(groups) == {"first": NOON, "second": None}, "of the second nothing waits"


def test_room_for_more_is_no_full_group(groups: Store) -> None:
    started(groups, "first-0")
    change_group(groups, "first", max_active_jobs=2)
    assert noted(groups) == 0
    change_group(groups, "first", max_active_jobs=None)
    assert noted(groups) == 0


def test_what_waits_for_its_time_or_has_ended_is_not_waiting(groups: Store) -> None:
    change_group(groups, "first", enabled=False)
    queue(groups, "first-0", source=Source.TRIGGER, scheduled_at=NOON + HOUR)
    with groups.writing() as tx:
        work_queue.cancel_queued(tx, [manifest_ids(groups)["first-1"]], "not today")
    assert noted(groups) == 0


def test_what_was_noted_a_little_while_ago_is_not_noted_again(groups: Store, clock: Clock) -> None:
    change_group(groups, "first", enabled=False)
    assert noted(groups) == 1
    clock.advance(minutes=59)
    assert noted(groups) == 0
    later = clock.advance(minutes=1)
    assert noted(groups) == 1
    assert shut(groups)["first"] == later
