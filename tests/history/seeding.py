"""A PostgreSQL database as it looks after a month, made by the database itself."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from headway.store.engine import Store
from headway.store.tables import schema

STATEMENTS = (
    """INSERT INTO headway_manifest_group (id, name, max_active_jobs, priority, enabled,
        created_at, updated_at)
    SELECT n, 'group-' || lpad(n::text, 5, '0'), CASE WHEN n % 3 = 0 THEN 4 END, n % 4,
        n % 50 <> 0, :now, :now FROM generate_series(1, :groups) AS n""",
    """INSERT INTO headway_manifest (id, external_id, workflow, input_type, input, group_id,
        schedule_kind, interval_seconds, scheduled_since, enabled, owner, created_at, updated_at)
    SELECT n, 'load-' || lpad(n::text, 6, '0'), 'workflow-' || n % 20, 'Table', '["orders"]',
        1 + (n - 1) % :groups, CASE WHEN n % 3 = 0 THEN 'dependent' ELSE 'interval' END,
        CASE WHEN n % 3 = 0 THEN NULL ELSE 3600 END, :now, n % 25 <> 0, 'seed', :now, :now
    FROM generate_series(1, :manifests) AS n""",
    """INSERT INTO headway_manifest_state (manifest_id, wake_at, settled_until, last_success_at,
        success_seq)
    SELECT n, CASE WHEN n % 3 <> 0 THEN cast(:now AS timestamptz) + n * interval '10 ms' END,
        :now, :now, 5 FROM generate_series(1, :manifests) AS n""",
    """INSERT INTO headway_dependency (child_id, parent_id, consumed_seq)
    SELECT n, n - 1, 4 + n % 2 FROM generate_series(3, :manifests, 3) AS n""",
    """INSERT INTO headway_execution_history (id, entry_id, manifest_id, group_id, external_id,
        group_name, workflow, input_type, input, source, priority, queued_at, attempt,
        max_attempts, dispatch_attempts, crashes, state, owner, dispatched_at, started_at,
        finished_at, failure_step, failure_type, failure_message, output)
    SELECT n, n, key, 1 + (key - 1) % :groups, 'load-' || lpad(key::text, 6, '0'),
        'group-' || lpad((1 + (key - 1) % :groups)::text, 5, '0'), 'workflow-' || key % 20,
        'Table', '["orders"]', CASE WHEN n % 9 = 0 THEN 'trigger' ELSE 'schedule' END, 0,
        ended - interval '4 s', 1, 1, 0, 0, state, 'seed-1', ended - interval '3 s',
        ended - interval '2 s', ended, 'load', CASE WHEN state = 'failed' THEN 'ValueError' END,
        'no rows', '"done"'
    FROM (
        SELECT n, 1 + (n::bigint * 7919) % :manifests AS key,
            cast(:now AS timestamptz) - (:executions - n) * (interval '30 days' / :executions)
                AS ended,
            CASE WHEN n % 200 = 0 THEN 'handed_back' WHEN n % 100 = 1 THEN 'cancelled'
                WHEN n % 25 = 2 THEN 'failed' ELSE 'completed' END AS state
        FROM generate_series(1, :executions) AS n
    ) AS runs""",
    """INSERT INTO headway_work_queue (manifest_id, group_id, workflow, input_type, input, source,
        priority, created_at, scheduled_at, delayed, status)
    SELECT n, 1 + (n - 1) % :groups, 'workflow-' || n % 20, 'Table', '["orders"]', 'trigger', n % 8,
        cast(:now AS timestamptz) - n * interval '1 s',
        CASE WHEN n % 10 = 0 THEN cast(:now AS timestamptz) + n * interval '1 s' END, n % 10 = 0,
        'queued'
    FROM generate_series(1, :queued) AS n""",
    """INSERT INTO headway_execution (id, entry_id, manifest_id, group_id, external_id, group_name,
        workflow, input_type, input, source, priority, queued_at, attempt, max_attempts,
        dispatch_attempts, crashes, state, owner, dispatched_at, started_at)
    OVERRIDING SYSTEM VALUE
    SELECT :executions + n, :executions + n, n, 1 + (n - 1) % :groups,
        'load-' || lpad(n::text, 6, '0'), 'group-' || lpad((1 + (n - 1) % :groups)::text, 5, '0'),
        'workflow-' || n % 20, 'Table', '["orders"]', 'schedule', 0, :now, 1, 1, 0, 0,
        'in_progress', 'seed-1', :now, :now FROM generate_series(1, :live) AS n""",
    """INSERT INTO headway_dead_letter (manifest_id, status, dead_lettered_at, reason, failures,
        execution_id, resolved_at)
    SELECT 7 * n, CASE WHEN n % 10 = 0 THEN 'awaiting_intervention' ELSE 'acknowledged' END, :now,
        'max retries exceeded', 3, n, CASE WHEN n % 10 = 0 THEN NULL
            ELSE cast(:now AS timestamptz) END
    FROM generate_series(1, :letters) AS n""",
    """INSERT INTO headway_audit (at, actor, action, subject)
    SELECT cast(:now AS timestamptz) - (:records - n) * interval '1 min', 'operator-' || n % 7,
        CASE WHEN n % 3 = 0 THEN 'trigger' ELSE 'cancel' END, 'load-' || n % 500
    FROM generate_series(1, :records) AS n""",
    """INSERT INTO headway_server (id, host, pid, roles, workflows, slots, started_at, renewed_at,
        expires_at)
    VALUES ('seed-1', 'host', 1, '["manager", "worker"]', '["workflow-1"]', 8, :now, :now,
        cast(:now AS timestamptz) + interval '15 s')""",
)


@dataclass(frozen=True)
class Size:
    """How much of what there is."""

    manifests: int
    groups: int
    executions: int
    queued: int
    live: int = 200
    records: int = 5_000

    @property
    def letters(self) -> int:
        """Dead letters; one in ten still waits for a person."""
        return self.manifests // 20


def seed(store: Store, size: Size) -> None:
    """Fill an empty, migrated database, and let the database look at what it has."""
    values = vars(size) | {"letters": size.letters}
    with store.writing() as tx:
        for statement in STATEMENTS:
            tx.connection.execute(text(statement), values | {"now": tx.now})
    with store.notifying() as connection:
        for table in schema.sorted_tables:
            connection.execute(text(f"VACUUM ANALYZE {table.name}"))
