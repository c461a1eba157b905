"""Queues of any depth, made by the database itself."""

from datetime import timedelta

from sqlalchemy import text

from benchmarks._many_manifests import COUNTED
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.types import EPOCH, MICROSECOND

AFTER = {"postgresql": ":now + n * interval '1 ms'", "sqlite": ":now + n * 1000"}
ANALYZED = ("manifest_group", "manifest", "manifest_state", "work_queue", "execution")

INSERT_GROUPS = f"""INSERT INTO headway_manifest_group (id, name, max_active_jobs, created_at,
        updated_at)
    {COUNTED.format(":groups")} SELECT n, 'group-' || n, CAST(:cap AS INTEGER), :now, :now
    FROM counted"""

INSERT_MANIFESTS = f"""INSERT INTO headway_manifest (id, external_id, workflow, input_type, input,
        group_id, schedule_kind, interval_seconds, scheduled_since, owner, created_at, updated_at)
    {COUNTED.format(":count")}
    SELECT n, 'extract-' || n, 'extract', 'Table', '["orders", ' || n || ']',
        1 + n % :groups, 'interval', 3600, :now, 'benchmark', :now, :now FROM counted"""

# As the manager would: one entry of each manifest, of all groups in turn.
INSERT_ENTRIES = """INSERT INTO headway_work_queue (manifest_id, group_id, workflow, input_type,
        input, source, created_at)
    SELECT id, group_id, workflow, input_type, input, 'schedule', {after} FROM
        (SELECT manifest.*, id AS n FROM headway_manifest AS manifest WHERE id > :behind) AS due"""


def fill_groups(store: Store, entries: int, groups: int, cap: int | None) -> None:
    """So many manifests in so many groups, each of which may run *cap* at once."""
    migrate(store)
    with store.writing() as tx:
        now = tx.now if tx.on_postgresql else (tx.now - EPOCH) // MICROSECOND
        values = {"count": entries, "groups": groups, "cap": cap, "now": now}
        for statement in (INSERT_GROUPS, INSERT_MANIFESTS):
            tx.connection.execute(text(statement), values)
    analyze(store)


def queue_all(store: Store) -> None:
    """An entry for every manifest that has none, and nothing running."""
    with store.writing() as tx:
        tx.connection.execute(text("DELETE FROM headway_execution"))
        tx.connection.execute(text("DELETE FROM headway_work_queue"))
        moment = tx.now - timedelta(minutes=5)
        now = moment if tx.on_postgresql else (moment - EPOCH) // MICROSECOND
        after = AFTER["postgresql" if tx.on_postgresql else "sqlite"]
        statement = text(INSERT_ENTRIES.format(after=after))
        tx.connection.execute(statement, {"now": now, "behind": 0})
    analyze(store)


def end_all(store: Store) -> None:
    """As if every job had ended at once."""
    with store.writing() as tx:
        tx.connection.execute(text("DELETE FROM headway_execution"))


def analyze(store: Store) -> None:
    with store.notifying() as connection:
        for table in ANALYZED:
            kind = "VACUUM ANALYZE" if store.on_postgresql else "ANALYZE"
            connection.execute(text(f"{kind} headway_{table}"))
