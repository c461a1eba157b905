"""Every hot verb fifty times on one connection, under generic plans too, and the plans it gets.

A driver prepares a statement after a few executions, and the server may then plan it without its
values: what breaks or turns slow at the eleventh execution is invisible to shorter tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from psycopg.sql import Literal
from sqlalchemy import event, func, insert, select, text, update

from headway.domain.execution import FailureCode
from headway.domain.routing import Share
from headway.domain.work_queue import NewEntry, Source
from headway.store import (
    delays,
    executions,
    failed_entries,
    manifests,
    objectives,
    outcomes,
    shut_groups,
    wakes,
    work_queue,
)
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import execution, manifest_group, manifest_state, pause_state, schema
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from headway.store.wakes import Scope
from tests.pgbouncer import with_setting
from tests.store.factories import COMPLETED, ME, NOON, Clock, a_manifest, declare, entry_for

TIMES = 50
WORK = Share(frozenset({"work"}))
NAMES = [f"extract-{number}" for number in range(3)]


def generic(url: str) -> str:
    """The same database under generic plans."""
    return with_setting(url, "plan_cache_mode", "force_generic_plan")


@pytest.fixture(
    params=[
        "sqlite",
        "postgresql",
        pytest.param("postgresql-generic", marks=pytest.mark.postgresql),
    ]
)
def hot_store(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Store]:
    fixture = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url = str(request.getfixturevalue(fixture))
    address = generic(url) if request.param.endswith("generic") else url
    store = Store(address, clock=clock, durable=False)
    migrate(store)
    yield store
    store.close()


def test_the_way_of_a_job_fifty_times_on_one_connection(hot_store: Store) -> None:
    declare(hot_store, *NAMES)
    with hot_store.writing() as tx:
        for _ in range(TIMES):
            entries = [entry_for(tx, name, priority=5) for name in NAMES]
            queued = work_queue.enqueue(tx, [*entries, *entries])
            assert len(queued) == len(NAMES)
            ready = [entry.id for entry in work_queue.dispatchable(tx, 10, 100)]
            assert ready == sorted(queued)
            pending = work_queue.dispatch(tx, ready)
            assert executions.count_active(tx, ["other"]).total == len(pending)
            claimed = executions.claim_pending(tx, ME, 10, ["work", "other"])
            assert [one.id for one in claimed] == sorted(pending.values())
            first, *rest = claimed
            assert executions.note_step(tx, ME, first.id, "load") == ""
            assert len(outcomes.finish(tx, ME, {one.id: COMPLETED for one in rest})) == 2
            assert len(outcomes.hand_back(tx, ME, [first.id])) == 1
            [entry] = work_queue.dispatchable(tx, None, 100)
            [again] = work_queue.dispatch(tx, [entry.id]).values()
            one = executions.claim_one(tx, ME, again)
            assert one is not None
            assert len(outcomes.finish(tx, ME, {one.id: COMPLETED})) == 1
            assert executions.count_active(tx, []).total == 0


def test_the_look_of_the_manager_fifty_times_on_one_connection(hot_store: Store) -> None:
    ids = list(declare(hot_store, *NAMES).values())
    with hot_store.writing() as tx:
        for turn in range(TIMES):
            wakes.leave_wakes(tx, [(key, Scope.SELF) for key in ids])
            wakes.leave_wakes(tx, [(ids[0], Scope.CHILDREN), (1, Scope.GROUP)])
            assert wakes.absorb_wakes(tx, 100) == len(ids) + 2
            assert sorted(manifests.due_candidates(tx, 100)) == ids
            views = manifests.load_views(tx, ids)
            assert sorted(view.manifest_id for view in views) == ids
            moment = tx.now + timedelta(hours=turn + 1)
            wakes.set_wake_times(tx, dict.fromkeys(ids, moment))
            assert wakes.next_wake_at(tx) == moment


def test_the_reapers_fifty_times_on_one_connection(hot_store: Store) -> None:
    declare(hot_store, *NAMES)
    with hot_store.writing() as tx:
        for _ in range(TIMES):
            entries = work_queue.enqueue(tx, [entry_for(tx, name) for name in NAMES])
            stale, refused, late = sorted(work_queue.dispatch(tx, entries).values())
            assert executions.claim_one(tx, ME, late) is not None
            assert executions.request_cancel(tx, [late], "timeout") == [late]
            assert [run.execution_id for run in executions.running(tx)] == [late]
            assert len(outcomes.fail_stale_in_progress(tx, [late])) == 1
            assert len(outcomes.take_back(tx, [refused], 1, "away")) == 1
            assert [one.id for one in outcomes.fail_stale_pending(tx, tx.now + timedelta(1))] == [
                stale
            ]
            assert delays.next_scheduled_at(tx) is None


def test_what_is_left_behind_fifty_times_on_one_connection(hot_store: Store) -> None:
    handed_over = COMPLETED._replace(hand_over=("look",))
    declare(hot_store, *NAMES)
    with hot_store.writing() as tx:
        objectives.ensure_standing(tx, "tests", "tests")
        for turn in range(TIMES):
            entries = work_queue.enqueue(tx, [entry_for(tx, name) for name in NAMES])
            work_queue.dispatch(tx, entries)
            claimed = executions.claim_pending(tx, ME, 10, ["work"])
            outcomes.finish(tx, ME, {one.id: handed_over for one in claimed})
            left = select(func.count()).select_from(pause_state)
            assert tx.connection.execute(left).scalar_one() == len(NAMES) * (turn + 1)


def test_the_look_of_the_dispatcher_fifty_times_on_one_connection(hot_store: Store) -> None:
    ids = declare(hot_store, *NAMES)
    with hot_store.writing() as tx:
        change = update(manifest_group).values(max_active_jobs=1)
        tx.connection.execute(change)
        for turn in range(TIMES):
            later = entry_for(tx, NAMES[0], scheduled_at=NOON + timedelta(hours=1))
            first, second, third = work_queue.enqueue(
                tx, [later, *(entry_for(tx, name) for name in NAMES[1:])]
            )
            assert delays.next_scheduled_at(tx) == NOON + timedelta(hours=1)
            found = work_queue.dispatchable(tx, 10, 100, ["other"], [WORK], NOON)
            assert [one.id for one in found] == [second, third]
            assert delays.ripen(replace(tx, now=NOON + timedelta(hours=1)), 10) == 1
            dispatched, refused, _ = work_queue.dispatch_each(tx, [second])
            assert (list(dispatched), refused) == ([second], {})
            assert shut_groups.note_shut_groups(tx, timedelta(0)) == 1
            reasons = {first: "one reason", third: "another"}
            ended = failed_entries.fail(tx, reasons, FailureCode.NOT_DISPATCHABLE)
            assert ended == [first, third]
            assert len(outcomes.take_back(tx, dispatched.values(), 1, "away")) == 1
            assert manifests.load_views(tx, [ids[NAMES[2]]])[0].failed_count == turn + 1


@pytest.fixture
def crowded(postgres_url: str, clock: Clock) -> Iterator[Store]:
    """A few thousand rows of everything on PostgreSQL, statistics included."""
    store = Store(generic(postgres_url), clock=clock)
    migrate(store)
    items = [a_manifest(f"extract-{number}") for number in range(3000)]
    ids = list(declare(store, *items).values())
    with store.writing() as tx:
        fields = {"workflow": "work", "input": "null", "input_type": "None", "created_at": NOON}
        rows = [fields | {"manifest_id": key, "group_id": 1, "source": "schedule"} for key in ids]
        ended = [row | {"status": "cancelled"} for row in rows]
        tx.connection.execute(insert(queue_table), [*ended, *ended])
        tx.connection.execute(insert(queue_table), rows[:100])
        entries = [NewEntry("work", Source.AD_HOC, "null", priority=n % 32) for n in range(3000)]
        work_queue.dispatch(tx, work_queue.enqueue(tx, entries))
        executions.claim_pending(tx, ME, 2900, ["work"])
        wakes.set_wake_times(
            tx, {key: NOON if number < 50 else None for number, key in enumerate(ids)}
        )
    with store.listening() as connection:
        for table in schema.sorted_tables:
            connection.execute(text(f"ANALYZE {table.name}"))
    yield store
    store.close()


def all_sent(tx: Transaction, verb: Callable[[], Any]) -> list[tuple[str, Any]]:
    """Every statement that *verb* sends, with its values."""
    sent: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        sent.append((statement, values))

    event.listen(tx.connection, "before_cursor_execute", note)
    verb()
    event.remove(tx.connection, "before_cursor_execute", note)
    return sent


def sqlite_plan_of(tx: Transaction, verb: Callable[[], Any]) -> str:
    """SQLite's plans for the statements of *verb*."""
    rows = [
        row
        for statement, values in all_sent(tx, verb)
        for row in tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
    ]
    return "\n".join(row[-1] for row in rows)


def generic_plan_of(tx: Transaction, verb: Callable[[], Any]) -> str:
    """PostgreSQL's plans for the statements of *verb* whatever their values."""
    return "\n".join(generic_plan(tx, *sent) for sent in all_sent(tx, verb))


def generic_plan(tx: Transaction, statement: str, values: Any) -> str:
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    for number, name in enumerate(names, 1):
        statement = statement.replace(f"%({name})s", f"${number}")
    driver = tx.connection.connection.driver_connection
    assert driver is not None
    given = ", ".join(Literal(values[name]).as_string(driver) for name in names)
    with driver.cursor() as cursor:
        cursor.execute(f"PREPARE looked_at AS {statement}")
        call = f"EXECUTE looked_at ({given})" if given else "EXECUTE looked_at"
        plan = "\n".join(line for (line,) in cursor.execute(f"EXPLAIN {call}"))
        cursor.execute("DEALLOCATE looked_at")
    return plan


def test_generic_plans_use_the_partial_indexes(crowded: Store) -> None:
    with crowded.writing() as tx:
        claim = generic_plan_of(tx, lambda: executions.claim_pending(tx, ME, 10, ["work"]))
        order = generic_plan_of(tx, lambda: work_queue.dispatchable(tx, 10, 100))
        candidates = generic_plan_of(tx, lambda: manifests.due_candidates(tx, 100))
        earliest = generic_plan_of(tx, lambda: wakes.next_wake_at(tx))
        [key, *_] = manifests.due_candidates(tx, 1)
        views = generic_plan_of(tx, lambda: manifests.load_views(tx, [key]))
        tx.connection.rollback()
    assert "$" in claim + candidates, "the plans are not generic"
    assert f"Scan using headway_execution_pending on {execution.name}" in claim
    assert "headway_work_queue_o" in order
    assert f"Seq Scan on {queue_table.name}" not in order
    assert "headway_manifest_state_wake" in candidates
    assert f"Seq Scan on {manifest_state.name}" not in candidates
    assert "headway_manifest_state_wake" in earliest
    assert f"Seq Scan on {queue_table.name}" not in views
    assert f"Seq Scan on {execution.name} " not in views


def test_sqlite_uses_the_partial_indexes(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    migrate(store)
    declare(store, "extract")
    with store.writing() as tx:
        work_queue.enqueue(tx, [entry_for(tx, "extract")])
        claim = sqlite_plan_of(tx, lambda: executions.claim_pending(tx, ME, 10, ["work"]))
        order = sqlite_plan_of(tx, lambda: work_queue.dispatchable(tx, 10, 100))
        candidates = sqlite_plan_of(tx, lambda: manifests.due_candidates(tx, 10))
        earliest = sqlite_plan_of(tx, lambda: wakes.next_wake_at(tx))
        views = sqlite_plan_of(tx, lambda: manifests.load_views(tx, [1]))
    store.close()
    assert "INDEX headway_execution_pending" in claim
    assert "INDEX headway_work_queue_order" in order
    assert "INDEX headway_work_queue_of_manifest" in order
    assert "INDEX headway_work_queue_delayed" in order
    scanned = [line for line in order.splitlines() if line.startswith("SCAN")]
    tables = ("headway_work_queue", "entry", "better", "ahead", "first_of_lane")
    assert not [line for line in scanned if line.split()[1] in tables and "INDEX" not in line]
    assert "INDEX headway_manifest_state_wake" in candidates
    assert "INDEX headway_manifest_state_wake" in earliest
    assert "INDEX headway_work_queue_of_manifest" in views
    assert "INDEX headway_execution_history_of_manifest (manifest_id=? AND id>?)" in views
    for plan in (order, views):
        assert "INDEX headway_execution_single_flight" in plan
        assert "INDEX headway_execution_overlapping" in plan
        assert "INDEX headway_dead_letter_awaiting" in plan
