"""The artifacts of the federation (design.md section 7), one table each, under the seed's names.

Ids are text and given by whoever writes; those of repeated work are derived from what caused it,
so that a second writer changes nothing. Lists and objects are ASCII JSON.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    text,
)

from headway.store.tables.base import schema
from headway.store.tables.columns import flag, listed, mapped, moment, one_of, text_
from headway.store.types import Instant

_BEING_BUILT = "status = 'CREATED' AND diazotroph_type = 'MANIFEST_BUILDER_DIAZOTROPH'"

event = Table(
    "headway_event",
    schema,
    Column("event_id", Text, primary_key=True),
    text_("type"),
    text_("resource_id"),
    text_("azolla_id"),
    moment("created_at"),
    flag("event", "processed"),
    Column("terminal_reason", Text),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("parked_at", Instant),
    Column("last_error", Text),
    one_of("event", "type", "TICKET_READY CAPTURE_READY MANIFEST_REQUESTED"),
    one_of(
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
    text_("owner_id"),
    moment("lease_expires_at"),
    moment("heartbeat_at"),
    Column("claim_version", BigInteger, nullable=False),
    one_of("claim_record", "resource_type", "EVENT WORKORDER"),
    CheckConstraint("claim_version >= 0", name="headway_claim_record_version"),
)

context_snapshot = Table(
    "headway_context_snapshot",
    schema,
    Column("snapshot_id", Text, primary_key=True),
    text_("objective_id"),
    listed("related_yield_refs"),
    text_("full_prompt_text"),
    moment("created_at"),
    Column("metadata", Text),
)

workorder = Table(
    "headway_workorder",
    schema,
    Column("work_order_id", Text, primary_key=True),
    Column("event_id", Text, ForeignKey("headway_event.event_id"), nullable=False, unique=True),
    text_("objective_id"),
    text_("diazotroph_type"),
    Column(
        "context_snapshot_id",
        Text,
        ForeignKey("headway_context_snapshot.snapshot_id"),
        nullable=False,
    ),
    Column("branch_name", Text),
    Column("budget_ms", BigInteger, nullable=False),
    moment("created_at"),
    Column("status", Text, nullable=False, server_default=text("'CREATED'")),
    Column("entry_id", BigInteger),
    one_of(
        "workorder",
        "diazotroph_type",
        "PATCH_DIAZOTROPH TRIAGE_DIAZOTROPH MANIFEST_BUILDER_DIAZOTROPH",
    ),
    one_of("workorder", "status", "CREATED EXECUTED"),
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

substrate_query = Table(
    "headway_substrate_query",
    schema,
    Column("query_id", Text, primary_key=True),
    text_("source_azolla_id"),
    text_("target_azolla_id"),
    text_("artifact_type"),
    mapped("filter"),
    moment("created_at"),
    one_of("substrate_query", "artifact_type", "pause_state objective blocker_ref"),
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
    text_("target_azolla_id"),
    text_("status"),
    listed("results"),
    moment("created_at"),
    one_of("substrate_query_response", "status", "OK DENIED TARGET_UNAVAILABLE"),
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
    text_("objective_id"),
    text_("title"),
    mapped("metadata"),
    text_("content"),
    text_("notes"),
    moment("created_at"),
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
    text_("objective_id"),
    Column("output_id", Text, ForeignKey("headway_output_bundle.output_id"), nullable=False),
    text_("gate_result"),
    text_("gate_reason"),
    moment("created_at"),
    one_of("run_record", "gate_result", "PASS FAIL"),
)

session_manifest = Table(
    "headway_session_manifest",
    schema,
    Column("manifest_id", Text, primary_key=True),
    text_("azolla_id"),
    listed("queried_azolla_ids"),
    listed("pause_state_summary"),
    text_("prioritized_orientation"),
    moment("created_at"),
    CheckConstraint("prioritized_orientation <> '[]'", name="headway_session_manifest_orientation"),
    Index("headway_session_manifest_latest", "azolla_id", "created_at"),
)

nonce = Table(
    "headway_nonce",
    schema,
    Column("source_azolla_id", Text, primary_key=True),
    Column("nonce", Text, primary_key=True),
    moment("seen_at"),
    Index("headway_nonce_oldest", "seen_at"),
)
