"""Databases full of manifests, made by the database itself: a million in seconds."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import text

from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.transaction import Transaction
from headway.store.types import EPOCH, MICROSECOND

GROUPS = 10
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
ANALYZED = ("manifest_group", "manifest", "manifest_state", "execution_history", "work_queue")

COUNTED = (
    "WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {})"
)
AFTER = {"postgresql": ":later + n * interval '10 ms'", "sqlite": ":later + n * 10000"}

INSERT_GROUPS = f"""INSERT INTO headway_manifest_group (id, name, created_at, updated_at)
    {COUNTED.format(":groups")} SELECT n, 'group-' || n, :now, :now FROM counted"""

INSERT_MANIFESTS = f"""INSERT INTO headway_manifest (id, external_id, workflow, input_type, input,
        group_id, schedule_kind, interval_seconds, scheduled_since, owner, created_at, updated_at)
    {COUNTED.format(":count")}
    SELECT n, 'extract-' || n, 'extract', 'Table', '["orders", ' || n || ']',
        1 + n % :groups, 'interval', 3600, :now, 'benchmark', :now, :now FROM counted"""

INSERT_STATES = f"""INSERT INTO headway_manifest_state (manifest_id, wake_at, settled_until,
        last_success_at, success_seq, failures_after)
    {COUNTED.format(":count")}
    SELECT n, {{after}}, :now, :now, :runs,
        CASE WHEN :runs > 0 THEN (:runs - 1) * :count + n ELSE 0 END FROM counted"""

INSERT_HISTORY = f"""INSERT INTO headway_execution_history (id, entry_id, manifest_id, group_id,
        external_id, group_name, workflow, input_type, input, source, priority, queued_at, attempt,
        max_attempts, dispatch_attempts, crashes, state, owner, dispatched_at, started_at,
        cancel_requested, finished_at)
    {COUNTED.format(":finished")}
    SELECT n, n, 1 + (n - 1) % :count, 1 + (1 + (n - 1) % :count) % :groups,
        'extract-' || (1 + (n - 1) % :count), 'group', 'extract', 'Table', '["orders"]', 'schedule',
        0, :now, 1, 1, 0, 0, 'completed', 'benchmark', :now, :now, false, :now FROM counted"""

WAKE = """UPDATE headway_manifest_state SET wake_at = :due, settled_until = :settled
    WHERE manifest_id = :key"""


def fill(store: Store, manifests: int, runs_of_each: int = 0) -> None:
    """Enabled hourly manifests, none of them due, each with so many successes behind it."""
    migrate(store)
    with store.writing() as tx:
        values = {"count": manifests, "groups": GROUPS, "runs": runs_of_each, "now": _at(tx)}
        for statement in (INSERT_GROUPS, INSERT_MANIFESTS):
            tx.connection.execute(text(statement), values)
        after = AFTER["postgresql" if tx.on_postgresql else "sqlite"]
        states = text(INSERT_STATES.format(after=after))
        tx.connection.execute(states, values | {"later": _at(tx, HOUR)})
        if runs_of_each:
            finished = {"finished": manifests * runs_of_each}
            tx.connection.execute(text(INSERT_HISTORY), values | finished)
    with store.notifying() as connection:
        for table in ANALYZED:
            connection.execute(text(f"ANALYZE headway_{table}"))


def make_due(store: Store, manifest_ids: Iterable[int]) -> None:
    """As if an hour had passed for these manifests, and their last entries had been dispatched."""
    with store.writing() as tx:
        tx.connection.execute(text("DELETE FROM headway_work_queue"))
        moments = {"due": _at(tx, -SECOND), "settled": _at(tx, -HOUR - SECOND)}
        tx.connection.execute(text(WAKE), [{"key": key, **moments} for key in manifest_ids])


def sequentially_read(store: Store) -> Counter[str]:
    """How many rows of each table sequential scans have read so far; PostgreSQL only."""
    with store.writing() as tx:
        tx.connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with store.writing() as tx:
        counted = text("SELECT relname, seq_tup_read FROM pg_stat_user_tables")
        return Counter({row.relname: row.seq_tup_read for row in tx.connection.execute(counted)})


def _at(tx: Transaction, offset: timedelta = timedelta(0)) -> datetime | int:
    """A moment as this database stores it."""
    when = tx.now + offset
    return when if tx.on_postgresql else (when - EPOCH) // MICROSECOND
