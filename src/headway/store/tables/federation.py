"""The artifacts of the federation (design.md section 7), one table each, under the seed's names.

Ids are text and given by whoever writes; those of repeated work are derived from what caused it,
so that a second writer changes nothing. Lists and objects are ASCII JSON.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    Table,
    Text,
    false,
    text,
)

from headway.store.tables.base import schema
from headway.store.types import Instant

_BEING_BUILT = "status = 'CREATED' AND diazotroph_type = 'MANIFEST_BUILDER_DIAZOTROPH'"


def _one_of(table: str, column: str, words: str) -> CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words.split())
    return CheckConstraint(f"{column} IN ({listed})", name=f"headway_{table}_{column}")


def _flag(table: str, column: str) -> Column[bool]:
    """A boolean; SQLite has none and gets a check instead."""
    kind = Boolean(create_constraint=True, name=f"headway_{table}_{column}")
    return Column(column, kind, nullable=False, server_default=false())


def _text(column: str) -> Column[str]:
    return Column(column, Text, nullable=False)


def _listed(column: str) -> Column[str]:
    return Column(column, Text, nullable=False, server_default=text("'[]'"))


def _mapped(column: str) -> Column[str]:
    return Column(column, Text, nullable=False, server_default=text("'{}'"))


def _moment(column: str) -> Column[object]:
    return Column(column, Instant, nullable=False)


event = Table(
    "headway_event",
    schema,
    Column("event_id", Text, primary_key=True),
    _text("type"),
    _text("resource_id"),
    _text("azolla_id"),
    _moment("created_at"),
    _flag("event", "processed"),
    Column("terminal_reason", Text),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("parked_at", Instant),
    Column("last_error", Text),
    _one_of("event", "type", "TICKET_READY CAPTURE_READY MANIFEST_REQUESTED"),
    _one_of(
        "event",
        "terminal_reason",
        "SCHEDULED MISSING_TICKET NON_EXECUTABLE_STATUS BLOCKED NO_PENDING_CAPTURES",
    ),
    CheckConstraint("processed = (terminal_reason IS NOT NULL)", name="headway_event_ended"),
    Index(
        "headway_event_unprocessed",
        "type",
        "created_at",
        "event_id",
        postgresql_where=text("NOT processed"),
        sqlite_where=text("NOT processed"),
    ),
    # Readiness is announced once; a manifest may be asked for again while the last one is built.
    Index(
        "headway_event_one_ready",
        "type",
        "resource_id",
        unique=True,
        postgresql_where=text("NOT processed AND type IN ('TICKET_READY', 'CAPTURE_READY')"),
        sqlite_where=text("NOT processed AND type IN ('TICKET_READY', 'CAPTURE_READY')"),
    ),
)

claim_record = Table(
    "headway_claim_record",
    schema,
    Column("resource_type", Text, primary_key=True),
    Column("resource_id", Text, primary_key=True),
    _text("owner_id"),
    _moment("lease_expires_at"),
    _moment("heartbeat_at"),
    Column("claim_version", BigInteger, nullable=False),
    _one_of("claim_record", "resource_type", "EVENT WORKORDER"),
    CheckConstraint("claim_version >= 0", name="headway_claim_record_version"),
)

context_snapshot = Table(
    "headway_context_snapshot",
    schema,
    Column("snapshot_id", Text, primary_key=True),
    _text("objective_id"),
    _listed("related_yield_refs"),
    _text("full_prompt_text"),
    _moment("created_at"),
    Column("metadata", Text),
)

workorder = Table(
    "headway_workorder",
    schema,
    Column("work_order_id", Text, primary_key=True),
    Column("event_id", Text, ForeignKey("headway_event.event_id"), nullable=False, unique=True),
    _text("objective_id"),
    _text("diazotroph_type"),
    Column(
        "context_snapshot_id",
        Text,
        ForeignKey("headway_context_snapshot.snapshot_id"),
        nullable=False,
    ),
    Column("branch_name", Text),
    Column("budget_ms", BigInteger, nullable=False),
    _moment("created_at"),
    Column("status", Text, nullable=False, server_default=text("'CREATED'")),
    Column("entry_id", BigInteger),
    _one_of(
        "workorder",
        "diazotroph_type",
        "PATCH_DIAZOTROPH TRIAGE_DIAZOTROPH MANIFEST_BUILDER_DIAZOTROPH",
    ),
    _one_of("workorder", "status", "CREATED EXECUTED"),
    CheckConstraint("budget_ms >= 1", name="headway_workorder_budget"),
    Index("headway_workorder_oldest", "status", "created_at", "work_order_id"),
    Index(
        "headway_workorder_one_manifest",
        "diazotroph_type",
        unique=True,
        postgresql_where=text(_BEING_BUILT),
        sqlite_where=text(_BEING_BUILT),
    ),
)

pause_state = Table(
    "headway_pause_state",
    schema,
    Column("pause_id", Text, primary_key=True),
    _text("objective_id"),
    _text("azolla_id"),
    _text("reason"),
    _text("prioritized_actions"),
    _moment("created_at"),
    _one_of("pause_state", "reason", "RUN_COMPLETE GATE_FAILED BUDGET_EXHAUSTED"),
    CheckConstraint("prioritized_actions <> '[]'", name="headway_pause_state_actions"),
    Index("headway_pause_state_of_objective", "objective_id", "created_at"),
    Index("headway_pause_state_newest", "created_at", "pause_id"),
)

capture_buffer = Table(
    "headway_capture_buffer",
    schema,
    Column("capture_id", Text, primary_key=True),
    _text("azolla_id"),
    _text("raw_content"),
    _text("source_label"),
    Column("status", Text, nullable=False, server_default=text("'PENDING'")),
    _moment("created_at"),
    _moment("updated_at"),
    _one_of("capture_buffer", "status", "PENDING PROCESSED"),
    Index("headway_capture_buffer_oldest", "status", "created_at", "capture_id"),
)

objective = Table(
    "headway_objective",
    schema,
    Column("objective_id", Text, primary_key=True),
    _text("azolla_id"),
    _text("title"),
    _text("acceptance_criteria"),
    _text("objective_type"),
    Column("status", Text, nullable=False, server_default=text("'NEW'")),
    Column("importance", SmallInteger, nullable=False, server_default=text("0")),
    Column("urgency", SmallInteger, nullable=False, server_default=text("0")),
    Column("blocked_reason", Text),
    # The blockers' ids; the artifact shows the blockers themselves.
    _listed("blocked_on"),
    _mapped("metadata"),
    _moment("created_at"),
    _moment("updated_at"),
    _one_of("objective", "objective_type", "TICKET STANDING"),
    _one_of("objective", "status", "NEW TODO IN_PROGRESS BLOCKED DONE"),
    CheckConstraint("importance BETWEEN 0 AND 4", name="headway_objective_importance"),
    CheckConstraint("urgency BETWEEN 0 AND 4", name="headway_objective_urgency"),
    Index("headway_objective_of_status", "status", "updated_at"),
    Index(
        "headway_objective_one_standing",
        "objective_type",
        unique=True,
        postgresql_where=text("objective_type = 'STANDING'"),
        sqlite_where=text("objective_type = 'STANDING'"),
    ),
)

blocker_ref = Table(
    "headway_blocker_ref",
    schema,
    Column("blocker_id", Text, primary_key=True),
    _text("kind"),
    _text("description"),
    _flag("blocker_ref", "resolved"),
    _one_of(
        "blocker_ref",
        "kind",
        "USER_INPUT EXTERNAL_SYSTEM DEPENDENCY_CHANGE DESIGN_DECISION ENVIRONMENT_ACCESS",
    ),
)

substrate_query = Table(
    "headway_substrate_query",
    schema,
    Column("query_id", Text, primary_key=True),
    _text("source_azolla_id"),
    _text("target_azolla_id"),
    _text("artifact_type"),
    _mapped("filter"),
    _moment("created_at"),
    _one_of("substrate_query", "artifact_type", "pause_state objective blocker_ref"),
)

substrate_query_response = Table(
    "headway_substrate_query_response",
    schema,
    Column("response_id", Text, primary_key=True),
    Column(
        "query_id",
        Text,
        ForeignKey("headway_substrate_query.query_id", ondelete="CASCADE"),
        nullable=False,
    ),
    _text("target_azolla_id"),
    _text("status"),
    _listed("results"),
    _moment("created_at"),
    _one_of("substrate_query_response", "status", "OK DENIED TARGET_UNAVAILABLE"),
    CheckConstraint(
        "status = 'OK' OR results = '[]'", name="headway_substrate_query_response_results"
    ),
    Index("headway_substrate_query_response_of_query", "query_id"),
)

output_bundle = Table(
    "headway_output_bundle",
    schema,
    Column("output_id", Text, primary_key=True),
    Column(
        "work_order_id",
        Text,
        ForeignKey("headway_workorder.work_order_id"),
        nullable=False,
        unique=True,
    ),
    _text("objective_id"),
    _text("title"),
    _mapped("metadata"),
    _text("content"),
    _text("notes"),
    _moment("created_at"),
)

run_record = Table(
    "headway_run_record",
    schema,
    Column("run_id", Text, primary_key=True),
    Column(
        "work_order_id",
        Text,
        ForeignKey("headway_workorder.work_order_id"),
        nullable=False,
        unique=True,
    ),
    _text("objective_id"),
    Column("output_id", Text, ForeignKey("headway_output_bundle.output_id"), nullable=False),
    _text("gate_result"),
    _text("gate_reason"),
    _moment("created_at"),
    _one_of("run_record", "gate_result", "PASS FAIL"),
)

session_manifest = Table(
    "headway_session_manifest",
    schema,
    Column("manifest_id", Text, primary_key=True),
    _text("azolla_id"),
    _listed("queried_azolla_ids"),
    _listed("pause_state_summary"),
    _text("prioritized_orientation"),
    _moment("created_at"),
    CheckConstraint("prioritized_orientation <> '[]'", name="headway_session_manifest_orientation"),
    Index("headway_session_manifest_latest", "azolla_id", "created_at"),
)

nonce = Table(
    "headway_nonce",
    schema,
    Column("source_azolla_id", Text, primary_key=True),
    Column("nonce", Text, primary_key=True),
    _moment("seen_at"),
    Index("headway_nonce_oldest", "seen_at"),
)
