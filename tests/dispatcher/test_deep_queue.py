"""A cycle reads what it looks at, however much is queued behind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import text, update

from benchmarks._deep_queue import analyze, fill_groups, queue_all
from headway.config import Settings
from headway.dispatcher.cycle import DispatchResult, JobDispatcher
from headway.observe import Observer
from headway.servers.local import LocalServer
from headway.store.dispatch_page import MOST_IN_ONE_CYCLE
from headway.store.engine import Store
from headway.store.tables import work_queue
from tests.builders import eventually
from tests.store.test_hot_verbs import generic

pytestmark = pytest.mark.long

ENTRIES, GROUPS = 100_000, 10_000
READ = text(
    "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables "
    "WHERE relname = 'headway_work_queue' AND schemaname = current_schema()"
)
OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


@pytest.fixture
def deep(postgres_url: str) -> Iterator[Store]:
    """As many queued entries and groups as the benchmark has, under generic plans."""
    store = Store(generic(postgres_url))
    fill_groups(store, ENTRIES, GROUPS, cap=None)
    queue_all(store)
    yield store
    store.close()


def cycle(store: Store, limit: int | None) -> DispatchResult:
    settings = Settings(max_active_jobs=limit)
    return JobDispatcher(store, settings, Observer(), LocalServer(lambda: None)).run_once()


def entries_read(store: Store) -> tuple[int, int]:
    """How many rows of the queue were read so far: by whole scans, and through indexes.

    A session that lives may keep what it has read to itself; one that has ended has told it.
    """
    store.close()
    eventually(lambda: _only_session(store))
    with store.writing() as tx:
        row = tx.connection.execute(READ).one()
    return int(row.seq_tup_read), int(row.idx_tup_fetch)


def _only_session(store: Store) -> bool:
    with store.writing() as tx:
        return int(tx.connection.execute(OTHERS).scalar_one()) == 0


@pytest.mark.postgresql
def test_no_statement_of_a_cycle_reads_the_queue_whole(deep: Store) -> None:
    cycle(deep, None)
    before = entries_read(deep)

    dispatched = len(cycle(deep, None).dispatched)

    after = entries_read(deep)
    assert dispatched == MOST_IN_ONE_CYCLE
    assert after[0] == before[0], "a sequential scan"
    assert after[1] - before[1] <= 2 * GROUPS + 15 * dispatched


@pytest.mark.postgresql
def test_a_crowd_that_waits_for_its_time_is_not_read(deep: Store) -> None:
    with deep.writing() as tx:
        later = {"scheduled_at": tx.now + timedelta(days=1), "delayed": True, "group_id": 1}
        tx.connection.execute(update(work_queue).values(**later, priority=31))
        one = update(work_queue).where(work_queue.c.manifest_id == ENTRIES)
        tx.connection.execute(one.values(delayed=False, scheduled_at=None, priority=0))
    analyze(deep)
    before = entries_read(deep)

    result, following = cycle(deep, None), cycle(deep, None)

    after = entries_read(deep)
    assert (len(result.dispatched), len(following.dispatched)) == (1, 0)
    assert following.due_in is not None and following.due_in > timedelta(hours=23)
    assert after[0] == before[0], "a sequential scan"
    assert after[1] - before[1] <= 50
