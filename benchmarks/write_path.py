"""Which is cheaper: a queue entry kept as `dispatched`, or folded into its execution?

    python -m benchmarks.write_path [--jobs N] [--rounds N] [--batch N] [--database NAME]

Database work only: enqueue all jobs, then dispatch, claim and finish batch after batch; one
client, one transaction per verb and batch. The layouts take turns in the same process.
- kept: dispatch updates the entry to `dispatched` with its execution id; the entry stays.
- folded: dispatch deletes the entry and carries its fields into the execution.
In both, claim updates the live execution and finish moves it into the history. Each pass starts
with new tables after a checkpoint, autovacuum off for them, so that dead rows stay countable.
"""

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text

from tests.postgres_server import private_server

GROUPS = 4
OWNER = "4f6c1c1e0b7d4a52"
OUTPUT = '{"rows_written": 1250}'
HEAD = "database         layout   jobs/s      min      max  folded/kept    won  WAL B/job  dead/job"

# What an execution records in either layout, and what folding adds to it.
RECORDED = "entry_id, manifest_id, group_id, workflow, input"
CARRIED = {"kept": "", "folded": ", source, priority, created_at, scheduled_for"}

JOB = "manifest_id bigint, group_id bigint, workflow text NOT NULL, input text NOT NULL"
QUEUED = """source text NOT NULL, priority integer NOT NULL, created_at {time} NOT NULL,
    scheduled_for {time}"""
TABLES = f"""
DROP TABLE IF EXISTS manifest; DROP TABLE IF EXISTS work_queue;
DROP TABLE IF EXISTS execution; DROP TABLE IF EXISTS execution_history;
CREATE TABLE manifest ({JOB}, source text, priority integer, PRIMARY KEY (manifest_id));
CREATE TABLE work_queue (id {{identity}}, {JOB}, {QUEUED}, execution_id bigint,
    dispatched_at {{time}}, status text NOT NULL
    CHECK (status IN ('queued', 'held', 'dispatched', 'cancelled', 'failed'))) {{storage}};
CREATE UNIQUE INDEX work_queue_automatic ON work_queue (manifest_id)
    WHERE status = 'queued' AND source IN ('schedule', 'dependent');
CREATE INDEX work_queue_order ON work_queue (group_id, priority DESC, created_at, id)
    WHERE status = 'queued';
CREATE TABLE execution (id {{identity}}, {{recorded}}, state text NOT NULL
    CHECK (state IN ('pending', 'in_progress'))) {{storage}};
CREATE INDEX execution_pending ON execution (id) WHERE state = 'pending';
CREATE UNIQUE INDEX execution_single_flight ON execution (manifest_id);
CREATE TABLE execution_history (id {{key}} PRIMARY KEY, {{recorded}}, finished_at {{time}} NOT NULL,
    output text, state text NOT NULL
    CHECK (state IN ('completed', 'failed', 'cancelled', 'handed_back'))) {{storage}};
CREATE INDEX execution_history_manifest ON execution_history (manifest_id, id);
CREATE INDEX execution_history_finished ON execution_history (finished_at)"""
KEPT_COLUMNS = f"""entry_id bigint NOT NULL, {JOB}, dispatched_at {{time}} NOT NULL, owner text,
    started_at {{time}}"""
COLUMNS = {"kept": KEPT_COLUMNS, "folded": f"{KEPT_COLUMNS}, {QUEUED}"}

MANIFESTS = f"""INSERT INTO manifest
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :jobs)
    SELECT n, n % {GROUPS}, 'delta-import', '{{"table": "warehouse.bronze.customer_orders",'
        || ' "columns": ["id", "customer_id", "total", "currency"], "since": "2025-01-01T00",'
        || ' "mode": "merge", "partition": ' || n || '}}',
        CASE WHEN n % 10 = 0 THEN 'trigger' ELSE 'schedule' END, n % 3 * 10 FROM numbers"""
ENQUEUE = """INSERT INTO work_queue (manifest_id, group_id, workflow, input, source, priority,
        created_at, scheduled_for, status)
    SELECT manifest_id, group_id, workflow, input, source, priority, :now, :now, 'queued'
    FROM manifest WHERE manifest_id > :after AND manifest_id <= :until ON CONFLICT DO NOTHING"""
PICKED = """SELECT {columns} FROM work_queue WHERE group_id = :group_id AND status = 'queued'
    ORDER BY priority DESC, created_at, id LIMIT :limit"""
COSTS = "SELECT pg_current_wal_lsn() - '0/0', sum(n_dead_tup) FROM pg_stat_user_tables"
LEFT = "SELECT (SELECT count(*) FROM work_queue), (SELECT count(*) FROM execution_history)"
PENDING = "SELECT id FROM execution WHERE state = 'pending' ORDER BY id LIMIT :limit"


class CommonPath:
    """One layout on one database; here what both databases say in the same words."""

    clock: ClassVar[str]
    checkpoint: ClassVar[str]
    claim_sql: ClassVar[str]
    types: ClassVar[dict[str, str]]

    def __init__(self, connection: Connection, layout: str) -> None:
        self.connection = connection
        self.layout = layout
        self.recorded = RECORDED + CARRIED[layout]
        self.start = f"INSERT INTO execution ({self.recorded}, dispatched_at, state)"
        self.moved = f"id, {self.recorded}, dispatched_at, owner, started_at"
        self.record = f"INSERT INTO execution_history ({self.moved}, state, finished_at, output)"

    def execute(self, sql: str, values: Any = None) -> Any:
        return self.connection.execute(text(sql), values)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Begin, and read the database's clock in the first statement."""
        with self.connection.begin():
            yield self.execute(self.clock).scalar()

    def prepare(self, jobs: int) -> None:
        recorded = COLUMNS[self.layout].format(**self.types)
        with self.connection.begin():
            for statement in TABLES.format(recorded=recorded, **self.types).split(";"):
                self.execute(statement)
            self.execute(MANIFESTS, {"jobs": jobs})
        driver: Any = self.connection.connection.driver_connection
        driver.execute(self.checkpoint)
        driver.commit()

    def enqueue(self, after: int, limit: int) -> None:
        with self.transaction() as now:
            self.execute(ENQUEUE, {"now": now, "after": after, "until": after + limit})

    def claim(self, limit: int) -> list[int]:
        with self.transaction() as now:
            rows = self.execute(self.claim_sql, {"owner": OWNER, "now": now, "limit": limit})
            return [row.id for row in rows]


class PostgresPath(CommonPath):
    """One statement per verb. Rows picked are locked; they are then found by primary key."""

    clock = "SELECT now()"
    checkpoint = "CHECKPOINT"
    claim_sql = f"""WITH picked AS MATERIALIZED ({PENDING} FOR UPDATE SKIP LOCKED)
        UPDATE execution SET state = 'in_progress', owner = :owner, started_at = :now
        WHERE id = ANY (ARRAY(SELECT id FROM picked)) RETURNING id, manifest_id, workflow, input"""
    identity = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    storage = "WITH (autovacuum_enabled = false)"
    types: ClassVar = dict(identity=identity, key="bigint", time="timestamptz", storage=storage)

    def dispatch(self, group_id: int, limit: int) -> None:
        # No second test of status below: it would tempt the planner away from the primary key.
        columns = {"kept": RECORDED.replace("entry_id", "id AS entry_id"), "folded": "id"}
        picked = f"""WITH picked AS MATERIALIZED (
            {PICKED.format(columns=columns[self.layout])} FOR UPDATE SKIP LOCKED)"""
        sql = {
            "kept": f"""{picked}, started AS ({self.start}
                SELECT {self.recorded}, :now, 'pending' FROM picked
                RETURNING id AS started_id, entry_id)
            UPDATE work_queue SET status = 'dispatched', execution_id = started_id,
                dispatched_at = :now FROM started WHERE id = entry_id""",
            "folded": f"""{picked}, entry AS (
                DELETE FROM work_queue WHERE id = ANY (ARRAY(SELECT id FROM picked))
                RETURNING *, id AS entry_id)
            {self.start} SELECT {self.recorded}, :now, 'pending' FROM entry""",
        }
        with self.transaction() as now:
            # A statement of its own: a snapshot is older than a lock taken inside it.
            self.execute("SELECT pg_try_advisory_xact_lock(1)")
            self.execute(sql[self.layout], {"group_id": group_id, "limit": limit, "now": now})

    def finish(self, ids: list[int]) -> None:
        sql = f"""WITH ended AS (
                DELETE FROM execution WHERE id = ANY (CAST(:ids AS bigint[]))
                AND state = 'in_progress' AND owner = :owner RETURNING *)
            {self.record} SELECT {self.moved}, 'completed', :now, output FROM ended JOIN
            unnest(CAST(:ids AS bigint[]), CAST(:outputs AS text[])) o (id, output) USING (id)"""
        with self.transaction() as now:
            outputs = [OUTPUT] * len(ids)
            self.execute(sql, {"ids": ids, "outputs": outputs, "owner": OWNER, "now": now})


class SqlitePath(CommonPath):
    """No data-changing CTEs: rows are copied, then deleted, under the same write lock."""

    clock = "SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
    claim_sql = f"""UPDATE execution SET state = 'in_progress', owner = :owner, started_at = :now
        WHERE id IN ({PENDING}) RETURNING id, manifest_id, workflow, input"""
    identity = "INTEGER PRIMARY KEY AUTOINCREMENT"
    types: ClassVar = dict(identity=identity, key="INTEGER", time="INTEGER", storage="")

    def dispatch(self, group_id: int, limit: int) -> None:
        columns = self.recorded.replace("entry_id", "id") + ", :now, 'pending'"
        copy = f"{self.start} {PICKED.format(columns=columns)} RETURNING id"
        settle = {
            "kept": """UPDATE work_queue AS q SET status = 'dispatched', execution_id = e.id,
                dispatched_at = :now FROM execution e WHERE e.id >= :first AND q.id = entry_id""",
            "folded": """DELETE FROM work_queue
                WHERE id IN (SELECT entry_id FROM execution WHERE id >= :first)""",
        }
        with self.transaction() as now:
            values = {"group_id": group_id, "limit": limit, "now": now}
            if ids := self.execute(copy, values).scalars().all():
                self.execute(settle[self.layout], {"now": now, "first": min(ids)})

    def finish(self, ids: list[int]) -> None:
        guard = "state = 'in_progress' AND owner = :owner"
        copy = f"""{self.record} SELECT {self.moved}, 'completed', :now, output
            FROM execution JOIN (SELECT CAST(key AS INTEGER) AS ended, value AS output
                FROM json_each(:outputs)) ON id = ended WHERE {guard}"""
        delete = f"""DELETE FROM execution WHERE id IN (SELECT value FROM json_each(:ids))
            AND {guard} RETURNING id"""
        with self.transaction() as now:
            outputs = json.dumps(dict.fromkeys(ids, OUTPUT))
            self.execute(copy, {"outputs": outputs, "owner": OWNER, "now": now})
            self.execute(delete, {"ids": json.dumps(ids), "owner": OWNER}).all()


WritePath = PostgresPath | SqlitePath


class Sample(NamedTuple):
    speed: float
    wal_bytes: float
    dead_rows: float


def count_costs(connection: Connection) -> tuple[int, int]:
    """WAL position and dead rows of the present tables; PostgreSQL only."""
    if connection.dialect.name == "sqlite":
        return 0, 0
    with connection.begin():
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with connection.begin():
        wal, dead_rows = connection.execute(text(COSTS)).one()
        return int(wal), int(dead_rows)


def run_pass(path: WritePath, jobs: int, batch: int) -> Sample:
    path.prepare(jobs)
    wal_before, dead_before = count_costs(path.connection)
    started = time.perf_counter()
    for after in range(0, jobs, batch):
        path.enqueue(after, batch)
    finished, groups = 0, cycle(range(GROUPS))
    while finished < jobs:
        path.dispatch(next(groups), batch)
        if ids := path.claim(batch):
            path.finish(ids)
            finished += len(ids)
    speed = jobs / (time.perf_counter() - started)
    wal, dead = count_costs(path.connection)
    with path.connection.begin():
        left = path.execute(LEFT).one()
    assert left == (jobs if path.layout == "kept" else 0, jobs), left
    return Sample(speed, (wal - wal_before) / jobs, (dead - dead_before) / jobs)


def compare(engine: Engine, kind: type[WritePath], options: argparse.Namespace) -> None:
    """Run the rounds, the first as warm-up and every other one in reverse; print medians."""
    samples: dict[str, list[Sample]] = {"kept": [], "folded": []}
    with engine.connect() as connection:
        for number in range(options.rounds + 1):
            for layout in sorted(samples, reverse=number % 2 == 0):
                sample = run_pass(kind(connection, layout), options.jobs, options.batch)
                samples[layout] += [sample] if number else []
    name = f"{engine.name} {'.'.join(map(str, engine.dialect.server_version_info or ()))}"
    for layout, taken in samples.items():
        speed, wal_bytes, dead_rows = map(statistics.median, zip(*taken, strict=True))
        ratios = [one.speed / kept.speed for one, kept in zip(taken, samples["kept"], strict=True)]
        won = f"{sum(ratio > 1 for ratio in ratios)}/{len(ratios)}"
        costs = f"{wal_bytes:9,.0f}  {dead_rows:8.2f}" if wal_bytes else f"{'-':>9}  {'-':>8}"
        sys.stdout.write(
            f"{name:15}  {layout:6}  {speed:7,.0f}  {min(taken).speed:7,.0f}"
            f"  {max(taken).speed:7,.0f}  {statistics.median(ratios):11.2f}  {won:>5}  {costs}\n"
        )


def open_sqlite(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--database", choices=("postgresql", "sqlite", "both"), default="both")
    options = parser.parse_args()
    sys.stdout.write(f"{HEAD}\n")
    if options.database != "sqlite":
        with private_server(durable=True) as server:
            url = make_url(server.url()).set(drivername="postgresql+psycopg")
            compare(create_engine(url), PostgresPath, options)
    if options.database != "postgresql":
        with tempfile.TemporaryDirectory() as directory:
            compare(open_sqlite(Path(directory, "headway.db")), SqlitePath, options)


if __name__ == "__main__":
    main()
