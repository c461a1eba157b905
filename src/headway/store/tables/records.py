"""What is kept about the deployment itself: schema version, dead letters, servers, audit."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

from headway.store.tables.base import id_column, schema
from headway.store.types import BigId, Instant

schema_version = Table(
    "headway_schema_version",
    schema,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("applied_at", Instant, nullable=False),
)

mark = Table(
    "headway_mark",
    schema,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

dead_letter = Table(
    "headway_dead_letter",
    schema,
    id_column(),
    Column("manifest_id", BigId, ForeignKey("headway_manifest.id"), nullable=False),
    Column("status", Text, nullable=False, server_default=text("'awaiting_intervention'")),
    Column("dead_lettered_at", Instant, nullable=False),
    Column("reason", Text, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("execution_id", BigId),
    Column("input", Text),
    Column("resolved_at", Instant),
    Column("resolution_note", Text),
    Column("retry_execution_id", BigId),
    CheckConstraint(
        "status IN ('awaiting_intervention', 'retried', 'acknowledged')",
        name="headway_dead_letter_status",
    ),
    CheckConstraint(
        "(status = 'awaiting_intervention') = (resolved_at IS NULL)",
        name="headway_dead_letter_resolved",
    ),
    Index(
        "headway_dead_letter_awaiting",
        "manifest_id",
        unique=True,
        postgresql_where=text("status = 'awaiting_intervention'"),
        sqlite_where=text("status = 'awaiting_intervention'"),
    ),
    Index(
        "headway_dead_letter_newest",
        "id",
        postgresql_where=text("status = 'awaiting_intervention'"),
        sqlite_where=text("status = 'awaiting_intervention'"),
    ),
    sqlite_autoincrement=True,
)

# What has ended, counted: of all together by the minute, and of each group by the hour. Group 0 is
# all of them; the one row 'until' says up to when everything has been counted.
tally = Table(
    "headway_tally",
    schema,
    Column("span", Text, primary_key=True),
    Column("group_id", BigId, primary_key=True, autoincrement=False),
    Column("starts_at", Instant, primary_key=True),
    Column("completed", BigInteger, nullable=False, server_default=text("0")),
    Column("failed", BigInteger, nullable=False, server_default=text("0")),
    Column("cancelled", BigInteger, nullable=False, server_default=text("0")),
    Column("run_seconds", Float, nullable=False, server_default=text("0")),
    CheckConstraint("span IN ('minute', 'hour', 'until')", name="headway_tally_span"),
    Index(
        "headway_tally_one_until",
        "span",
        unique=True,
        postgresql_where=text("span = 'until'"),
        sqlite_where=text("span = 'until'"),
    ),
)

server = Table(
    "headway_server",
    schema,
    Column("id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("roles", Text, nullable=False),
    Column("workflows", Text, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("renewed_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("unbroken_since", Instant),
    Column("routes", Text, nullable=False, server_default=text("'{}'")),
)

audit = Table(
    "headway_audit",
    schema,
    id_column(),
    Column("at", Instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text),
    Index("headway_audit_at", "at", "id"),
    Index("headway_audit_of_subject", "subject", "id"),
    sqlite_autoincrement=True,
)
