"""What is to be run and what has run: queue, live and finished executions, wake inbox, outbox.

Live tables carry few indexes and no foreign keys, because every job writes to them several
times; finished executions move to the history, written once and indexed for reading.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    false,
    text,
    true,
)

from headway.store.tables.base import (
    FINAL_STATES,
    LIVE_STATES,
    PRIORITY,
    SOURCES,
    id_column,
    schema,
)
from headway.store.types import BigId, Instant

work_queue = Table(
    "headway_work_queue",
    schema,
    id_column(),
    Column("manifest_id", BigId),
    Column("group_id", BigId),
    Column("workflow", Text, nullable=False),
    Column("input_type", Text, nullable=False),
    Column("input", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("status", Text, nullable=False, server_default=text("'queued'")),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("created_at", Instant, nullable=False),
    Column("scheduled_at", Instant),
    Column("scheduled_for", Instant),
    Column("parents_seen", Text),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("max_attempts", Integer, nullable=False, server_default=text("1")),
    Column("dispatch_attempts", Integer, nullable=False, server_default=text("0")),
    Column("crashes", Integer, nullable=False, server_default=text("0")),
    Column("dead_letter_id", BigId),
    Column("ended_at", Instant),
    Column("ended_reason", Text),
    # Waits for ``scheduled_at``, and is not in the way of what is ready. Only entries that are
    # queued for later have it; the dispatcher clears it when their time has come.
    Column("delayed", Boolean, nullable=False, server_default=false()),
    CheckConstraint(f"source IN ({SOURCES})", name="headway_work_queue_source"),
    CheckConstraint(
        "status IN ('queued', 'held', 'cancelled', 'failed')", name="headway_work_queue_status"
    ),
    CheckConstraint(PRIORITY, name="headway_work_queue_priority"),
    CheckConstraint(
        "(manifest_id IS NULL) = (source = 'ad_hoc')", name="headway_work_queue_ad_hoc"
    ),
    Index(
        "headway_work_queue_one_queued",
        "manifest_id",
        unique=True,
        postgresql_where=text("status = 'queued' AND source IN ('schedule', 'dependent')"),
        sqlite_where=text("status = 'queued' AND source IN ('schedule', 'dependent')"),
    ),
    Index(
        "headway_work_queue_one_activation",
        "manifest_id",
        unique=True,
        postgresql_where=text("status = 'queued' AND source = 'activation'"),
        sqlite_where=text("status = 'queued' AND source = 'activation'"),
    ),
    Index(
        "headway_work_queue_one_held",
        "manifest_id",
        unique=True,
        postgresql_where=text("status = 'held'"),
        sqlite_where=text("status = 'held'"),
    ),
    Index(
        "headway_work_queue_of_manifest",
        "manifest_id",
        text("priority DESC"),
        "created_at",
        "id",
        postgresql_where=text("status = 'queued' AND manifest_id IS NOT NULL"),
        sqlite_where=text("status = 'queued' AND manifest_id IS NOT NULL"),
    ),
    Index(
        "headway_work_queue_order",
        "group_id",
        text("priority DESC"),
        "created_at",
        "id",
        postgresql_where=text("status = 'queued' AND NOT delayed"),
        sqlite_where=text("status = 'queued' AND NOT delayed"),
    ),
    Index(
        "headway_work_queue_delayed",
        "scheduled_at",
        postgresql_where=text("status = 'queued' AND delayed"),
        sqlite_where=text("status = 'queued' AND delayed"),
    ),
    sqlite_autoincrement=True,
)


def _attempt_columns() -> list[Column[object]]:
    """What an execution keeps, live or finished: its entry folded in, names copied."""
    return [
        Column("entry_id", BigId, nullable=False),
        Column("manifest_id", BigId),
        Column("group_id", BigId),
        Column("external_id", Text),
        Column("group_name", Text),
        Column("workflow", Text, nullable=False),
        Column("input_type", Text, nullable=False),
        Column("input", Text, nullable=False),
        Column("source", Text, nullable=False),
        Column("priority", SmallInteger, nullable=False),
        Column("queued_at", Instant, nullable=False),
        Column("scheduled_at", Instant),
        Column("scheduled_for", Instant),
        Column("parents_seen", Text),
        Column("attempt", Integer, nullable=False),
        Column("max_attempts", Integer, nullable=False),
        Column("dispatch_attempts", Integer, nullable=False),
        Column("crashes", Integer, nullable=False),
        Column("dead_letter_id", BigId),
        Column("state", Text, nullable=False),
        Column("owner", Text),
        Column("dispatched_at", Instant, nullable=False),
        Column("started_at", Instant),
        Column("cancel_requested", Boolean, nullable=False, server_default=false()),
        Column("cancel_reason", Text),
        Column("running_step", Text),
        Column("step_started_at", Instant),
        Column("progress", Float),
        Column("progress_note", Text),
    ]


def _task_server_column() -> Column[object]:
    """Where the dispatcher has sent an execution; ``local`` are headway's own workers."""
    return Column("task_server", Text, nullable=False, server_default=text("'local'"))


def _steps_column() -> Column[object]:
    """The steps that have ended: a JSON list of name, start and seconds of each."""
    return Column("steps", Text)


execution = Table(
    "headway_execution",
    schema,
    id_column(),
    *_attempt_columns(),
    Column("single_flight", Boolean, nullable=False, server_default=true()),
    _task_server_column(),
    _steps_column(),
    CheckConstraint(f"state IN ({LIVE_STATES})", name="headway_execution_state"),
    CheckConstraint(
        "(state = 'in_progress') = (owner IS NOT NULL AND started_at IS NOT NULL)",
        name="headway_execution_owned",
    ),
    Index(
        "headway_execution_pending",
        text("priority DESC"),
        "id",
        postgresql_where=text("state = 'pending' AND task_server = 'local'"),
        sqlite_where=text("state = 'pending' AND task_server = 'local'"),
    ),
    Index(
        "headway_execution_single_flight",
        "manifest_id",
        unique=True,
        postgresql_where=text("single_flight AND manifest_id IS NOT NULL"),
        sqlite_where=text("single_flight AND manifest_id IS NOT NULL"),
    ),
    Index(
        "headway_execution_overlapping",
        "manifest_id",
        postgresql_where=text("NOT single_flight"),
        sqlite_where=text("NOT single_flight"),
    ),
    sqlite_autoincrement=True,
)

execution_history = Table(
    "headway_execution_history",
    schema,
    Column("id", BigId, primary_key=True, autoincrement=False),
    *_attempt_columns(),
    Column("finished_at", Instant, nullable=False),
    Column("failure_step", Text),
    Column("failure_type", Text),
    Column("failure_message", Text),
    Column("failure_traceback", Text),
    Column("output", Text),
    _task_server_column(),
    # What the job itself said about trying again: never, or not before.
    Column("final", Boolean, nullable=False, server_default=false()),
    Column("retry_at", Instant),
    _steps_column(),
    CheckConstraint(f"state IN ({FINAL_STATES})", name="headway_execution_history_state"),
    CheckConstraint(
        "(state = 'failed') <= (failure_type IS NOT NULL)",
        name="headway_execution_history_failure",
    ),
    Index(
        "headway_execution_history_of_manifest",
        "manifest_id",
        "id",
        postgresql_where=text("manifest_id IS NOT NULL"),
        sqlite_where=text("manifest_id IS NOT NULL"),
    ),
    Index("headway_execution_history_of_entry", "entry_id"),
    Index("headway_execution_history_finished", "finished_at", "id"),
    Index(
        "headway_execution_history_of_group",
        "group_id",
        "id",
        postgresql_where=text("group_id IS NOT NULL"),
        sqlite_where=text("group_id IS NOT NULL"),
    ),
    # What most jobs are not written to.
    Index(
        "headway_execution_history_not_completed",
        "state",
        "id",
        postgresql_where=text("state <> 'completed'"),
        sqlite_where=text("state <> 'completed'"),
    ),
)

wake = Table(
    "headway_wake",
    schema,
    id_column(),
    Column("manifest_id", BigId),
    Column("group_id", BigId),
    Column("scope", Text, nullable=False),
    Column("after_id", BigId, nullable=False, server_default=text("0")),
    CheckConstraint("scope IN ('self', 'children', 'group')", name="headway_wake_scope"),
    CheckConstraint(
        "(scope = 'group') = (group_id IS NOT NULL) AND (scope = 'group') = (manifest_id IS NULL)",
        name="headway_wake_subject",
    ),
    sqlite_autoincrement=True,
)

outbox = Table(
    "headway_outbox",
    schema,
    Column("execution_id", BigId, primary_key=True, autoincrement=False),
    Column("task_server", Text, nullable=False),
    Column("publish_at", Instant, nullable=False),
    Column("published", Integer, nullable=False, server_default=text("0")),
    Index("headway_outbox_due", "publish_at"),
)
