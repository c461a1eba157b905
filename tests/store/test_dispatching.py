"""Dispatching entries each on its own account: what is created, refused, started, and waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from headway.domain.execution import Execution, ExecutionState
from headway.domain.starting import Start
from headway.domain.work_queue import Source
from headway.store.dispatching import Dispatched, Refused, dispatch_each
from headway.store.engine import Store
from headway.store.tables import execution, work_queue
from tests.store.factories import (
    ME,
    NOON,
    Clock,
    a_manifest,
    declare,
    queue,
    queue_ad_hoc,
    rows_of,
    started,
    wakes_of,
)

STEPS = {"work": "read"}


def dispatch(store: Store, *entries: int, **options: Any) -> Dispatched:
    with store.writing() as tx:
        return dispatch_each(tx, entries, **options)


def queued(store: Store) -> list[int]:
    return [row["id"] for row in rows_of(store, work_queue)]


def live(store: Store) -> dict[int, dict[str, Any]]:
    """The live executions by the ids of their entries."""
    return {row["entry_id"]: row for row in rows_of(store, execution)}


def test_a_second_entry_of_a_manifest_waits_and_is_not_refused(store: Store) -> None:
    declare(store, "extract", "load")
    first, second = (queue(store, source=Source.TRIGGER) for _ in range(2))
    other = queue(store, "load")
    made = dispatch(store, first, second, other)
    assert (set(made.executions), made.refused, made.started) == ({first, other}, {}, [])
    assert queued(store) == [second]
    assert made.executions == {key: row["id"] for key, row in live(store).items()}


def test_one_whose_manifest_runs_waits(store: Store) -> None:
    declare(store, "extract")
    started(store, "extract")
    entry = queue(store)
    assert dispatch(store, entry) == Dispatched({}, {}, [])
    assert queued(store) == [entry]
    assert dispatch(store) == Dispatched({}, {}, [])


@pytest.fixture
def picky(store: Store) -> Store:
    """A store whose database refuses executions of the workflow ``bad``."""
    with store.writing() as tx:
        if not tx.on_postgresql:
            tx.connection.execute(
                text(
                    "CREATE TRIGGER picky BEFORE INSERT ON headway_execution"
                    " WHEN NEW.workflow = 'bad' BEGIN SELECT RAISE(ABORT, 'not that one'); END"
                )
            )
        else:
            tx.connection.execute(
                text("ALTER TABLE headway_execution ADD CONSTRAINT picky CHECK (workflow <> 'bad')")
            )
    return store


def test_what_the_database_refuses_costs_no_other(picky: Store) -> None:
    workflows = ("work", "bad", "work", "bad", "work")
    entries = [queue_ad_hoc(picky, workflow=one) for one in workflows]
    bad, good = [entries[1], entries[3]], [entries[0], entries[2], entries[4]]
    start = Start(ME, tuple(entries), STEPS)
    made = dispatch(picky, *entries, elsewhere={entries[4]: "gpu"}, start=start)
    assert sorted(made.executions) == good
    assert sorted(made.refused) == bad
    assert all("not that one" in why or "picky" in why for why in made.refused.values())
    assert sorted(one.entry_id for one in made.started) == good
    assert queued(picky) == bad
    assert {key: row["task_server"] for key, row in live(picky).items()} == {
        good[0]: "local",
        good[1]: "local",
        good[2]: "gpu",
    }


def test_who_is_not_careful_is_told_and_has_dispatched_nothing(picky: Store) -> None:
    entries = [queue_ad_hoc(picky, workflow=one) for one in ("work", "bad")]
    with pytest.raises(Refused), picky.writing() as tx:
        dispatch_each(tx, entries, careful=False)
    assert (queued(picky), live(picky)) == (entries, {})


def test_what_may_overlap_wakes_its_manifest_and_what_may_not_does_not(store: Store) -> None:
    ids = declare(store, a_manifest("overlaps", allow_overlap=True), "alone")
    entries = [queue(store, "overlaps"), queue(store, "alone"), queue_ad_hoc(store)]
    dispatch(store, *entries)
    assert wakes_of(store) == [(ids["overlaps"], "self")]
    flights = {key: row["single_flight"] for key, row in live(store).items()}
    assert flights == dict(zip(entries, (False, True, True), strict=True))


def test_what_starts_at_once_is_told_in_full_and_the_rest_is_pending(
    store: Store, clock: Clock
) -> None:
    ids = declare(store, a_manifest(input="[1]"), "waits")
    said: dict[str, Any] = {"priority": 7, "attempts": 2, "max_attempts": 5, "scheduled_for": NOON}
    starts, waits = queue(store, **said), queue(store, "waits")
    clock.now = NOON + timedelta(minutes=1)
    made = dispatch(store, starts, waits, start=Start(ME, (starts,), STEPS))
    assert made.executions.keys() == {starts, waits}
    [run] = made.started
    assert run == Execution(
        id=made.executions[starts],
        entry_id=starts,
        manifest_id=ids["extract"],
        external_id="extract",
        group_name="etl",
        workflow="work",
        input="[1]",
        source="schedule",
        priority=7,
        attempt=3,
        crashes=0,
        state=ExecutionState.IN_PROGRESS,
        scheduled_for=NOON,
        dispatched_at=clock.now,
        started_at=clock.now,
        finished_at=None,
        owner=ME,
        cancel_requested=False,
        running_step="read",
        step_started_at=clock.now,
        progress=None,
        progress_note=None,
        failure=None,
        output=None,
        task_server="local",
        parents_seen=run.parents_seen,
        max_attempts=5,
        queued_at=NOON,
    )
    began = ("state", "owner", "started_at", "running_step", "step_started_at", "dispatched_at")
    assert [live(store)[starts][name] for name in began] == [
        "in_progress",
        ME,
        clock.now,
        "read",
        clock.now,
        clock.now,
    ]
    pending = [live(store)[waits][name] for name in began]
    assert pending == ["pending", None, None, None, None, clock.now]


def test_what_took_a_worker_along_does_not_start_at_once(store: Store) -> None:
    entry = queue_ad_hoc(store)
    with store.writing() as tx:
        tx.connection.execute(work_queue.update().values(crashes=1))
    made = dispatch(store, entry, start=Start(ME, (entry,), STEPS))
    assert (set(made.executions), made.started) == ({entry}, [])
    assert live(store)[entry]["state"] == "pending"
