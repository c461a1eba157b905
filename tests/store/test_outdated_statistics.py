"""How much is read while the planner believes the queue empty, as it was when last counted.

Autovacuum counts when it comes by. A queue that was empty then, on pages that were full before, is
taken for a single row; what was planned as a join with it read the whole queue for every entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import NamedTuple

import pytest
from sqlalchemy import delete, select, text

from headway.domain.manifest import Group
from headway.domain.routing import Share
from headway.domain.starting import Start
from headway.store import executions, manifests, outcomes, wakes, work_queue
from headway.store.engine import Store
from headway.store.locks import Lock
from headway.store.migrate import migrate
from headway.store.tables import dead_letter, execution, execution_history, wake
from headway.store.tables import work_queue as queue
from headway.store.transaction import Transaction
from headway.store.wakes import Scope
from tests.pgbouncer import with_setting
from tests.store.factories import COMPLETED, ME, a_manifest, declare, entry_for

pytestmark = pytest.mark.postgresql

WORK = Share(frozenset({"work"}))
BELIEVED_EMPTY = (queue, execution, wake)
MANY = 2000
DISPATCHED = 500
# Each is read when looked for, with its manifest and its group, and then for whether it is the
# first of its manifest, whether another runs, to be locked, deleted, copied.
READ_FOR_EACH = 25
# A table as small as these may be gone through as a whole by a statement, but not for each entry.
WHOLE_TABLES = 10
# The driver prepares a statement the sixth time, and PostgreSQL keeps its plan the sixth time then.
PLANNED_FOR_GOOD = 12


@pytest.fixture(params=["auto", "force_generic_plan"])
def store(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Store]:
    store = Store(with_setting(postgres_url, "plan_cache_mode", request.param), durable=False)
    migrate(store)
    yield store
    store.close()


def believed_empty(store: Store, names: list[str]) -> None:
    """The live tables have had rows, and were counted when those were gone."""
    with store.writing() as tx:
        for table in BELIEVED_EMPTY:
            tx.connection.execute(
                text(f"ALTER TABLE {table.name} SET (autovacuum_enabled = false)")
            )
        entries = work_queue.enqueue(tx, [entry_for(tx, name) for name in names])
        work_queue.dispatch(tx, entries)
        wakes.leave_wakes(tx, [(number, Scope.SELF) for number in range(MANY)])
    with store.writing() as tx:
        tx.connection.execute(delete(execution))
        tx.connection.execute(delete(wake))
    with store.listening() as connection:
        for table in BELIEVED_EMPTY:
            connection.execute(text(f"ANALYZE {table.name}"))


class Reads(NamedTuple):
    """How many rows were looked up by an index, and how many met going through a whole table."""

    looked_up: int
    met: int

    def __add__(self, other: Reads) -> Reads:  # type: ignore[override] # not one after the other
        return Reads(self.looked_up + other.looked_up, self.met + other.met)

    @property
    def few(self) -> bool:
        return self.looked_up < READ_FOR_EACH * DISPATCHED and self.met < WHOLE_TABLES * MANY


def reads_of(tx: Transaction) -> Callable[[], Reads]:
    """What it will have read since now, of all tables."""
    before = _read(tx)
    return lambda: Reads(*(now - then for now, then in zip(_read(tx), before, strict=True)))


def _read(tx: Transaction) -> Reads:
    counted = text(
        "SELECT coalesce(sum(idx_tup_fetch), 0)::bigint, coalesce(sum(seq_tup_read), 0)::bigint"
        " FROM pg_stat_xact_user_tables WHERE schemaname = current_schema()"
    )
    return Reads(*tx.connection.execute(counted).one())


@pytest.mark.full
@pytest.mark.parametrize("groups", [1, 20])
def test_what_is_read_grows_with_what_is_dispatched(store: Store, groups: int) -> None:
    names = [f"extract-{number}" for number in range(MANY)]
    declare(
        store,
        *(a_manifest(name, group=Group(f"group-{n % groups}")) for n, name in enumerate(names)),
    )
    believed_empty(store, names)
    with store.writing() as tx:
        work_queue.enqueue(tx, [entry_for(tx, name) for name in names])

    with store.leading(Lock.DISPATCH) as leader:
        assert leader is not None
        read_so_far = reads_of(leader)
        found = work_queue.dispatchable(
            leader, None, DISPATCHED, (), [WORK], leader.now - timedelta(minutes=1)
        )
        ids = tuple(one.id for one in found[:DISPATCHED])
        begin = Start(ME, ids, {"work": "work"})
        started = work_queue.dispatch_each(leader, ids, {}, begin, careful=False).started
        read = read_so_far()
    with store.writing() as tx:
        read_so_far = reads_of(tx)
        ended = outcomes.finish(tx, ME, {one.id: COMPLETED for one in started})
        read += read_so_far()
        left = tx.connection.execute(select(execution.c.id)).all()

    assert len(started) == len(ended) == DISPATCHED
    assert not left
    assert read.few, read


def test_what_was_planned_for_empty_tables_reads_as_little(store: Store) -> None:
    names = [f"extract-{number}" for number in range(MANY)]
    keys = list(declare(store, *names).values())
    with store.listening() as connection:
        for table in (*BELIEVED_EMPTY, execution_history, dead_letter):
            connection.execute(text(f"VACUUM (ANALYZE) {table.name}"))
    for _ in range(PLANNED_FOR_GOOD):
        look_at(store, keys[:1])
    with store.writing() as tx:
        executed = work_queue.dispatch(
            tx, work_queue.enqueue(tx, [entry_for(tx, name) for name in names])
        )
        claimed = executions.claim_pending(tx, ME, MANY, ["work"])
        outcomes.finish(tx, ME, {one.id: COMPLETED for one in claimed})
        work_queue.enqueue(tx, [entry_for(tx, name) for name in names])

    assert len(executed) == len(claimed) == MANY
    assert look_at(store, keys[:DISPATCHED]).few


def look_at(store: Store, manifest_ids: list[int]) -> Reads:
    """What the manager reads to know about these manifests."""
    with store.leading(Lock.MANAGE) as leader:
        assert leader is not None
        read_so_far = reads_of(leader)
        assert len(manifests.load_views(leader, manifest_ids)) == len(manifest_ids)
        return read_so_far()


def test_what_is_read_grows_with_what_is_claimed(store: Store) -> None:
    names = [f"extract-{number}" for number in range(MANY)]
    declare(store, *names)
    believed_empty(store, names)
    with store.writing() as tx:
        work_queue.dispatch(tx, work_queue.enqueue(tx, [entry_for(tx, name) for name in names]))

    with store.writing() as tx:
        read_so_far = reads_of(tx)
        claimed = executions.claim_pending(tx, ME, DISPATCHED, ["work"])
        read = read_so_far()

    assert len(claimed) == DISPATCHED
    assert read.few, read


def test_what_is_read_grows_with_what_the_manager_looks_at(store: Store) -> None:
    names = [f"extract-{number}" for number in range(MANY)]
    keys = list(declare(store, *names).values())
    believed_empty(store, names)
    with store.writing() as tx:
        work_queue.enqueue(tx, [entry_for(tx, name) for name in names])
        wakes.set_wake_times(tx, dict.fromkeys(keys, None))
        wakes.leave_wakes(tx, [(key, Scope.SELF) for key in keys[:DISPATCHED]])

    with store.leading(Lock.MANAGE) as leader:
        assert leader is not None
        read_so_far = reads_of(leader)
        wakes.absorb_wakes(leader, MANY)
        due = manifests.due_candidates(leader, MANY)
        views = manifests.load_views(leader, due)
        wakes.set_wake_times(leader, dict.fromkeys(due, None))
        read = read_so_far()

    assert len(views) == DISPATCHED
    assert read.few, read
