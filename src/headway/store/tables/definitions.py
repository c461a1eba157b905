"""What is declared: groups, manifests with their narrow state, edges, applied declarations."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    false,
    text,
    true,
)

from headway.store.tables.base import PRIORITY, SCHEDULE_KINDS, id_column, schema
from headway.store.types import BigId, Instant

ONLY_POSTGRESQL = {"only": "postgresql"}

manifest_group = Table(
    "headway_manifest_group",
    schema,
    id_column(),
    Column("name", Text, nullable=False, unique=True),
    Column("max_active_jobs", Integer),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    Column("declared", Text),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("last_shut_at", Instant),
    CheckConstraint("max_active_jobs > 0", name="headway_manifest_group_cap"),
    CheckConstraint(PRIORITY, name="headway_manifest_group_priority"),
    Index("headway_manifest_group_by_name", text('name COLLATE "C"'), info=ONLY_POSTGRESQL).ddl_if(
        "postgresql"
    ),
    Index(
        "headway_manifest_group_disabled",
        "id",
        postgresql_where=text("NOT enabled"),
        sqlite_where=text("NOT enabled"),
    ),
    sqlite_autoincrement=True,
)

manifest = Table(
    "headway_manifest",
    schema,
    id_column(),
    Column("external_id", Text, nullable=False),
    Column("workflow", Text, nullable=False),
    Column("input_type", Text, nullable=False),
    Column("input", Text, nullable=False),
    Column("group_id", BigId, ForeignKey("headway_manifest_group.id"), nullable=False),
    Column("schedule_kind", Text, nullable=False),
    Column("interval_seconds", BigInteger),
    Column("fixed_rate", Boolean, nullable=False, server_default=false()),
    Column("cron_expression", Text),
    Column("time_zone", Text),
    Column("once_at", Instant),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("max_retries", Integer),
    Column("timeout_seconds", BigInteger),
    Column("retry_delay_seconds", Float),
    Column("retry_multiplier", Float),
    Column("retry_max_delay_seconds", Float),
    Column("join_mode", Text),
    Column("when_busy", Text),
    Column("misfire_policy", Text),
    Column("misfire_threshold_seconds", BigInteger),
    Column("catch_up_limit", Integer),
    Column("first_run", Text),
    Column("variance_seconds", BigInteger),
    Column("exclusions", Text),
    Column("scheduled_since", Instant, nullable=False),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    Column("owner", Text, nullable=False),
    Column("batch", Text),
    Column("declared", Text),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("removed_at", Instant),
    Column("allow_overlap", Boolean, nullable=False, server_default=false()),
    Column("retry_jitter", Float),
    CheckConstraint(f"schedule_kind IN ({SCHEDULE_KINDS})", name="headway_manifest_kind"),
    CheckConstraint(
        "(schedule_kind = 'interval') = (interval_seconds IS NOT NULL)"
        " AND (schedule_kind = 'cron') = (cron_expression IS NOT NULL)"
        " AND (schedule_kind = 'once') = (once_at IS NOT NULL)",
        name="headway_manifest_schedule",
    ),
    CheckConstraint("interval_seconds > 0", name="headway_manifest_interval"),
    CheckConstraint(PRIORITY, name="headway_manifest_priority"),
    CheckConstraint("max_retries >= 0", name="headway_manifest_retries"),
    CheckConstraint("timeout_seconds > 0", name="headway_manifest_timeout"),
    CheckConstraint(
        "misfire_policy IN ('fire_once_now', 'do_nothing', 'catch_up')",
        name="headway_manifest_misfire",
    ),
    CheckConstraint("catch_up_limit BETWEEN 1 AND 10000", name="headway_manifest_catch_up"),
    CheckConstraint(
        "first_run IN ('at_once', 'at_first_occurrence')", name="headway_manifest_first_run"
    ),
    CheckConstraint("join_mode IN ('all', 'any')", name="headway_manifest_join"),
    CheckConstraint(
        "when_busy IN ('skip', 'keep', 'replace', 'reject')", name="headway_manifest_when_busy"
    ),
    Index(
        "headway_manifest_external_id",
        "external_id",
        unique=True,
        postgresql_where=text("removed_at IS NULL"),
        sqlite_where=text("removed_at IS NULL"),
    ),
    Index("headway_manifest_of_group", "group_id", "id"),
    # In the order of SQLite, and of prefixes; the unique index has that of the database's language.
    Index(
        "headway_manifest_by_name",
        text('external_id COLLATE "C"'),
        postgresql_where=text("removed_at IS NULL"),
        info=ONLY_POSTGRESQL,
    ).ddl_if("postgresql"),
    sqlite_autoincrement=True,
)

manifest_state = Table(
    "headway_manifest_state",
    schema,
    Column(
        "manifest_id",
        BigId,
        ForeignKey("headway_manifest.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("wake_at", Instant),
    Column("settled_until", Instant),
    Column("last_success_at", Instant),
    Column("success_seq", BigInteger, nullable=False, server_default=text("0")),
    Column("failures_after", BigInteger, nullable=False, server_default=text("0")),
    Index(
        "headway_manifest_state_wake",
        "wake_at",
        "manifest_id",
        postgresql_where=text("wake_at IS NOT NULL"),
        sqlite_where=text("wake_at IS NOT NULL"),
    ),
)

dependency = Table(
    "headway_dependency",
    schema,
    id_column(),
    Column(
        "child_id",
        BigId,
        ForeignKey("headway_manifest.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("parent_id", BigId, ForeignKey("headway_manifest.id", ondelete="SET NULL")),
    Column("consumed_seq", BigInteger, nullable=False, server_default=text("0")),
    CheckConstraint("child_id <> parent_id", name="headway_dependency_not_itself"),
    Index("headway_dependency_edge", "child_id", "parent_id", unique=True),
    Index("headway_dependency_of_parent", "parent_id", "child_id"),
    sqlite_autoincrement=True,
)

declaration = Table(
    "headway_declaration",
    schema,
    id_column(),
    Column("application", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("manifests", Integer, nullable=False),
    Column("applied_at", Instant, nullable=False),
    Index("headway_declaration_latest", "application", "id"),
    sqlite_autoincrement=True,
)
