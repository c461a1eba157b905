"""What somebody else is changing at this moment holds up itself and nothing else (PostgreSQL)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, select, text

from headway.config import Settings
from headway.domain.execution import ExecutionState, Outcome
from headway.manager.reap import is_stale
from headway.store import executions, manifests, outcomes, wakes, work_queue
from headway.store.engine import Store
from headway.store.executions import Running
from headway.store.locks import Lock
from headway.store.migrate import migrate
from headway.store.tables import manifest_state
from headway.store.tables import work_queue as queue_table
from headway.store.transaction import Transaction
from headway.store.wakes import Scope
from tests.store.factories import ME, NOON, Clock, declare, entry_for, rows_of, started

GRACE = Settings().cancel_grace
HOUR = timedelta(hours=1)


@pytest.fixture
def store(postgres_url: str, clock: Clock) -> Iterator[Store]:
    store = Store(postgres_url, clock=clock)
    migrate(store)
    yield store
    store.close()


@contextmanager
def somebody_changing(store: Store, rows: Any) -> Iterator[None]:
    """Another connection holds these rows locked and does not commit."""
    other = Store(store.url.render_as_string(hide_password=False))
    try:
        with other.writing() as tx:
            tx.connection.execute(rows.with_for_update()).all()
            yield
    finally:
        other.close()


def test_a_locked_manifest_keeps_its_wake_up_and_delays_nobody(store: Store) -> None:
    ids = declare(store, "locked", "free")
    with store.writing() as tx:
        wakes.set_wake_times(tx, dict.fromkeys(ids.values()))
        wakes.leave_wakes(tx, [(key, Scope.SELF) for key in ids.values()])
    locked = select(manifest_state).where(manifest_state.c.manifest_id == ids["locked"])

    with somebody_changing(store, locked), store.writing() as tx:
        assert wakes.absorb_wakes(tx, 10) == 1
        assert manifests.due_candidates(tx, 10) == [ids["free"]]

    with store.writing() as tx:
        assert wakes.absorb_wakes(tx, 10) == 1
        assert manifests.due_candidates(tx, 10) == sorted(ids.values())


def test_a_due_manifest_that_is_locked_is_left_for_the_next_cycle(store: Store) -> None:
    ids = declare(store, "locked", "free")
    locked = select(manifest_state).where(manifest_state.c.manifest_id == ids["locked"])
    with somebody_changing(store, locked), store.writing() as tx:
        assert manifests.due_candidates(tx, 10) == [ids["free"]]


def test_a_locked_entry_is_left_for_the_next_cycle(store: Store) -> None:
    names = [f"load-{number}" for number in range(5)]
    declare(store, *names)
    with store.writing() as tx:
        entries = work_queue.enqueue(tx, [entry_for(tx, name) for name in names])
    locked = select(queue_table).where(queue_table.c.id == entries[2])
    with somebody_changing(store, locked), store.writing() as tx:
        assert sorted(work_queue.dispatch(tx, entries)) == sorted({*entries} - {entries[2]})
    assert [row["id"] for row in rows_of(store, queue_table)] == [entries[2]]


def sent_by(store: Store, verb: Callable[[Transaction], Any]) -> list[str]:
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        statements.append(" ".join(statement.split()))

    with store.writing() as tx:
        event.listen(tx.connection, "before_cursor_execute", note)
        verb(tx)
        event.remove(tx.connection, "before_cursor_execute", note)
    return statements


def test_multi_row_writes_lock_in_id_order_first(store: Store) -> None:
    ids = declare(store, "one", "two")
    runs = {started(store, name).id for name in ("one", "two")}
    verbs: dict[str, Callable[[Transaction], Any]] = {
        "execution": lambda tx: executions.request_cancel(tx, sorted(runs), "timeout"),
        "execution ": lambda tx: outcomes.finish(
            tx, ME, dict.fromkeys(runs, Outcome(ExecutionState.COMPLETED))
        ),
        "work_queue": lambda tx: work_queue.cancel_queued(tx, list(ids.values()), "no"),
    }
    for table, verb in verbs.items():
        name = f"headway_{table.strip()}"
        first = sent_by(store, verb)[0]
        assert f"ORDER BY {name}.id FOR UPDATE" in first, first


def test_the_leader_sets_its_own_timeouts(store: Store) -> None:
    wanted = {
        "statement_timeout": "5s",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "5s",
    }
    with store.leading(Lock.MANAGE) as tx:
        assert tx is not None
        shown = {name: tx.connection.execute(text(f"SHOW {name}")).scalar_one() for name in wanted}
        [major, *_] = tx.connection.dialect.server_version_info or (0,)
        if int(major) >= 17:
            assert tx.connection.execute(text("SHOW transaction_timeout")).scalar_one() == "20s"
    assert shown == wanted
    with store.writing() as tx:
        assert tx.connection.execute(text("SHOW statement_timeout")).scalar_one() == "0"


def test_due_ness_is_asked_of_the_databases_clock(postgres_url: str) -> None:
    store = Store(postgres_url)
    statements: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        statements.append(statement)

    event.listen(store._writer, "before_cursor_execute", note)
    with store.writing():
        pass
    store.close()
    assert [statement for statement in statements if "clock_timestamp()" in statement]


@pytest.mark.parametrize(
    ("timeout", "age", "stale"),
    [
        (None, HOUR, False),
        (None, HOUR + timedelta(seconds=1), True),
        (2 * HOUR, 2 * HOUR + GRACE, False),
        (2 * HOUR, 2 * HOUR + GRACE + timedelta(seconds=1), True),
    ],
)
def test_a_run_is_stale_only_after_it_had_time_to_stop(
    timeout: timedelta | None, age: timedelta, stale: bool
) -> None:
    run = Running(1, 1, NOON - age, timeout, cancel_requested=True)
    assert is_stale(run, NOON, Settings()) is stale
