"""The tables, as the migrations create them; a test compares the two."""

from headway.store.tables.base import schema
from headway.store.tables.definitions import (
    declaration,
    dependency,
    manifest,
    manifest_group,
    manifest_state,
)
from headway.store.tables.records import audit, dead_letter, schema_version, server
from headway.store.tables.views import executions, work_queue_entries
from headway.store.tables.work import execution, execution_history, wake, work_queue

__all__ = [
    "audit",
    "dead_letter",
    "declaration",
    "dependency",
    "execution",
    "execution_history",
    "executions",
    "manifest",
    "manifest_group",
    "manifest_state",
    "schema",
    "schema_version",
    "server",
    "wake",
    "work_queue",
    "work_queue_entries",
]
