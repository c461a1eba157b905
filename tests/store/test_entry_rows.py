"""What the dispatcher reads of an entry: everything its manifest and its group say about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from headway.domain.manifest import Group
from headway.domain.work_queue import RestingTimes, Source, WorkQueueEntry
from headway.store import work_queue
from headway.store.engine import Store
from headway.store.tables import work_queue as queue_table
from tests.store.factories import (
    NOBODY,
    NOON,
    Clock,
    a_manifest,
    change_group,
    change_manifest,
    declare,
    queue,
    queue_ad_hoc,
    rows_of,
)

HOUR = timedelta(hours=1)
RESTING = '[{"kind": "hours"}]'


def ready(store: Store) -> list[WorkQueueEntry]:
    with store.reading() as tx:
        return work_queue.dispatchable(tx, None, 100)


def test_an_entry_is_read_with_its_manifest_and_its_group(store: Store, clock: Clock) -> None:
    group = Group("etl", 4, 20)
    ids = declare(store, a_manifest(group=group, allow_overlap=True), groups=[group])
    change_manifest(store, "extract", exclusions=RESTING, time_zone="Europe/Berlin")
    change_group(store, "etl", last_shut_at=NOON + 2 * HOUR)
    entry = queue(store, input='"ü€"', priority=7, scheduled_at=NOON + HOUR)
    [row] = rows_of(store, queue_table)
    clock.now = NOON + 3 * HOUR
    assert ready(store) == [
        WorkQueueEntry(
            id=entry,
            workflow="work",
            source=Source.SCHEDULE,
            priority=7,
            created_at=NOON,
            manifest_id=ids["extract"],
            group_id=row["group_id"],
            external_id="extract",
            group_name="etl",
            group_priority=20,
            group_max_active_jobs=4,
            resting=RestingTimes(RESTING, "Europe/Berlin"),
            eligible_since=NOON + 2 * HOUR,
            input_bytes=7,
            missing=None,
            may_overlap=True,
            task_server="local",
            ready_at=NOON + HOUR,
        )
    ]


def test_an_entry_without_a_manifest_has_nothing_of_one(store: Store) -> None:
    entry = queue_ad_hoc(store)
    assert ready(store) == [
        WorkQueueEntry(
            id=entry,
            workflow="work",
            source=Source.AD_HOC,
            priority=0,
            created_at=NOON,
            manifest_id=None,
            group_id=None,
            external_id=None,
            group_name=None,
            group_priority=0,
            group_max_active_jobs=None,
            resting=None,
            eligible_since=NOON,
            input_bytes=4,
            ready_at=NOON,
        )
    ]


@pytest.mark.parametrize(
    ("queued_after", "scheduled_after", "shut_after", "ready_after", "eligible_after"),
    [
        (2, 1, None, 2, 2),
        (1, 2, None, 2, 2),
        (1, 2, 0, 2, 2),
        (1, None, 2, 1, 2),
    ],
)
def test_an_entry_could_begin_to_wait_once_it_is_due_and_its_group_was_open(
    store: Store,
    clock: Clock,
    queued_after: int,
    scheduled_after: int | None,
    shut_after: int | None,
    ready_after: int,
    eligible_after: int,
) -> None:
    declare(store, "extract")
    clock.now = NOON + queued_after * HOUR
    if shut_after is not None:
        change_group(store, "etl", last_shut_at=NOON + shut_after * HOUR)
    moment = None if scheduled_after is None else NOON + scheduled_after * HOUR
    queue(store, scheduled_at=moment)
    clock.now = NOON + 5 * HOUR
    [entry] = ready(store)
    assert entry.ready_at == NOON + ready_after * HOUR
    assert entry.eligible_since == NOON + eligible_after * HOUR


@pytest.mark.parametrize("source", [Source.TRIGGER, Source.DEPENDENT])
def test_what_does_not_run_by_time_does_not_rest(store: Store, source: Source) -> None:
    declare(store, "extract", "other")
    change_manifest(store, "extract", exclusions=RESTING)
    queue(store, source=source)
    queue(store, "other")
    assert [one.resting for one in ready(store)] == [None, None]


def test_a_rest_without_a_zone_is_in_utc(store: Store) -> None:
    declare(store, "extract")
    change_manifest(store, "extract", exclusions=RESTING)
    queue(store)
    [entry] = ready(store)
    assert entry.resting == RestingTimes(RESTING, "UTC")


@pytest.mark.parametrize(
    ("lost", "missing"),
    [
        ({"manifest_id": NOBODY}, f"manifest {NOBODY}"),
        ({"group_id": NOBODY}, f"group {NOBODY}"),
        ({"group_id": None}, "group"),
        ({}, None),
    ],
    ids=str,
)
def test_what_an_entry_belongs_to_and_is_not_there_is_named(
    store: Store, lost: dict[str, Any], missing: str | None
) -> None:
    declare(store, "extract")
    queue(store, source=Source.TRIGGER)
    [row] = rows_of(store, queue_table)
    with store.writing() as tx:
        tx.connection.execute(queue_table.delete())
        tx.connection.execute(insert(queue_table).values(row | lost))
    [entry] = ready(store)
    assert entry.missing == missing
