"""A manifest's definition comes out of its row as it went in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.due import MisfirePolicy
from headway.domain.exclusions import exclude
from headway.domain.manifest import Group, Manifest, WhenBusy
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import Never, Schedule, cron, every, once
from headway.domain.time_options import TimeOptions
from headway.domain.timing import FirstRun
from headway.store.engine import Store
from headway.store.tables import manifest
from tests.store.factories import NOON, a_manifest, change_manifest, declare, rows_of, view_of

NOTHING = dict.fromkeys(
    (
        "interval_seconds",
        "cron_expression",
        "time_zone",
        "once_at",
        "max_retries",
        "timeout_seconds",
        "retry_delay_seconds",
        "retry_multiplier",
        "retry_max_delay_seconds",
        "retry_jitter",
        "join_mode",
        "when_busy",
        "misfire_policy",
        "misfire_threshold_seconds",
        "catch_up_limit",
        "first_run",
        "variance_seconds",
        "exclusions",
        "batch",
        "removed_at",
    )
)
AFTER: dict[str, Any] = {"schedule": Never(), "parents": ("extract",)}
PERHAPS = TimeOptions(
    misfire_policy=MisfirePolicy.CATCH_UP,
    misfire_threshold=timedelta(seconds=90),
    catch_up_limit=5,
    variance=timedelta(seconds=30),
    exclusions=(exclude.weekends(),),
    first_run=FirstRun.AT_ONCE,
    tz="Europe/Berlin",
)


def row_of(store: Store, item: Manifest) -> dict[str, Any]:
    declare(store, *(["extract"] if item.parents else []), item)
    [row] = [one for one in rows_of(store, manifest) if one["external_id"] == item.external_id]
    return row


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (a_manifest("a", schedule=Never()), {"schedule_kind": "none"}),
        (
            a_manifest("a", schedule=every(minutes=5)),
            {"schedule_kind": "interval", "interval_seconds": 300},
        ),
        (
            a_manifest("a", schedule=cron("0 9 * * *", "Europe/Berlin"), batch="days"),
            {
                "schedule_kind": "cron",
                "cron_expression": "0 9 * * *",
                "time_zone": "Europe/Berlin",
                "batch": "days",
            },
        ),
        (a_manifest("a", schedule=once(NOON)), {"schedule_kind": "once", "once_at": NOON}),
        (
            a_manifest("a", **AFTER, join="any"),
            {"schedule_kind": "dependent", "join_mode": "any"},
        ),
        (
            a_manifest("a", **AFTER, dormant=True, when_busy=WhenBusy.KEEP),
            {"schedule_kind": "dormant_dependent", "join_mode": "all", "when_busy": "keep"},
        ),
        (
            a_manifest("a", schedule=Never(), max_retries=0, timeout=timedelta(minutes=2)),
            {"schedule_kind": "none", "max_retries": 0, "timeout_seconds": 120},
        ),
        (
            a_manifest("a", schedule=every(minutes=5), time=PERHAPS),
            {
                "schedule_kind": "interval",
                "interval_seconds": 300,
                "time_zone": "Europe/Berlin",
                "misfire_policy": "catch_up",
                "misfire_threshold_seconds": 90,
                "catch_up_limit": 5,
                "variance_seconds": 30,
                "first_run": "at_once",
            },
        ),
        (
            a_manifest(
                "a",
                schedule=Never(),
                retry=RetryPolicy(timedelta(seconds=1.5), 3, timedelta(minutes=1), 0.5),
            ),
            {
                "schedule_kind": "none",
                "retry_delay_seconds": 1.5,
                "retry_multiplier": 3,
                "retry_max_delay_seconds": 60,
                "retry_jitter": 0.5,
            },
        ),
    ],
)
def test_a_row_says_what_was_declared(store: Store, item: Manifest, told: dict[str, Any]) -> None:
    row = row_of(store, item)
    common = {
        "id": row["id"],
        "external_id": "a",
        "workflow": "work",
        "input_type": "None",
        "input": "null",
        "group_id": row["group_id"],
        "fixed_rate": False,
        "priority": 0,
        "scheduled_since": NOON,
        "enabled": True,
        "owner": "warehouse",
        "declared": row["declared"],
        "created_at": NOON,
        "updated_at": NOON,
        "allow_overlap": False,
    }
    if item.time.exclusions:
        common["exclusions"] = row["exclusions"]
        assert "days" in row["exclusions"]
    assert row == NOTHING | common | told


@pytest.mark.parametrize(
    "schedule",
    [
        every(minutes=5),
        every(minutes=5, fixed_rate=True),
        cron("0 9 * * *", "Europe/Berlin"),
        once(NOON + timedelta(days=1)),
        Never(),
    ],
)
def test_a_view_has_the_schedule_and_the_options_that_were_declared(
    store: Store, schedule: Schedule
) -> None:
    by_time = schedule.kind in ("interval", "cron")
    time = PERHAPS if by_time else TimeOptions()
    retry = RetryPolicy(timedelta(seconds=1.5), 3, timedelta(minutes=1), 0.5)
    item = a_manifest(schedule=schedule, time=time, retry=retry, enabled=False)
    declare(store, item, groups=[Group("etl", enabled=False)])
    view = view_of(store)
    assert (view.schedule, view.kind, view.retry) == (schedule, schedule.kind, retry)
    assert view.time.misfire_policy == time.misfire_policy
    assert (view.time.exclusions, view.time.variance) == (time.exclusions, time.variance)
    assert (view.time.first_run, view.time.catch_up_limit) == (time.first_run, time.catch_up_limit)
    assert view.time.misfire_threshold == time.misfire_threshold
    assert (view.declared_at, view.trouble, view.join) == (NOON, None, "all")
    assert (view.enabled, view.group_enabled) == (False, False)


def test_a_view_of_a_dependent_says_how_it_waits_for_its_parents(store: Store) -> None:
    declare(store, "extract", a_manifest("all", **AFTER), a_manifest("any", **AFTER, join="any"))
    views = [view_of(store, name) for name in ("all", "any")]
    assert [(one.kind, one.join) for one in views] == [("dependent", "all"), ("dependent", "any")]


def test_a_row_that_somebody_broke_says_what_is_wrong_and_never_runs(store: Store) -> None:
    declare(store, a_manifest(schedule=cron("0 9 * * *"), max_retries=2))
    change_manifest(store, "extract", cron_expression="61 9 * * *")
    view = view_of(store)
    assert (view.schedule, view.time, view.max_retries) == (Never(), TimeOptions(), 2)
    assert view.trouble is not None and "61" in view.trouble
