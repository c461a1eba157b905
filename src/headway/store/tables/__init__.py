"""The tables, as the migrations create them; a test compares the two."""

from headway.store.tables.access import idempotency, logout, token, wrong_try
from headway.store.tables.base import schema
from headway.store.tables.definitions import (
    declaration,
    dependency,
    manifest,
    manifest_group,
    manifest_state,
)
from headway.store.tables.federation import (
    claim_record,
    context_snapshot,
    event,
    nonce,
    output_bundle,
    run_record,
    session_manifest,
    substrate_query,
    substrate_query_response,
    workorder,
)
from headway.store.tables.records import (
    audit,
    dead_letter,
    mark,
    schema_version,
    server,
    tally,
)
from headway.store.tables.substrate import blocker_ref, capture_buffer, objective, pause_state
from headway.store.tables.views import executions, work_queue_entries
from headway.store.tables.work import execution, execution_history, outbox, wake, work_queue

__all__ = [
    "audit",
    "blocker_ref",
    "capture_buffer",
    "claim_record",
    "context_snapshot",
    "dead_letter",
    "declaration",
    "dependency",
    "event",
    "execution",
    "execution_history",
    "executions",
    "idempotency",
    "logout",
    "manifest",
    "manifest_group",
    "manifest_state",
    "mark",
    "nonce",
    "objective",
    "outbox",
    "output_bundle",
    "pause_state",
    "run_record",
    "schema",
    "schema_version",
    "server",
    "session_manifest",
    "substrate_query",
    "substrate_query_response",
    "tally",
    "token",
    "wake",
    "work_queue",
    "work_queue_entries",
    "workorder",
    "wrong_try",
]
