"""No table is forgotten: for each it is written down what becomes of its rows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from headway.store import retention
from headway.store.tables import schema

SOURCE = Path(__file__).parents[2] / "src" / "headway"

DELETED_BY = {
    "headway_execution_history": "delete_finished",
    "headway_work_queue": "delete_ended_entries",
    "headway_dead_letter": "delete_resolved_dead_letters",
    "headway_manifest": "delete_removed_manifests",
    "headway_manifest_group": "delete_empty_groups",
    "headway_declaration": "delete_old_declarations",
}
GOES_WITH = {
    "headway_manifest_state": "headway_manifest",
    "headway_dependency": "headway_manifest",
}
NEVER_GROWS = {
    "headway_execution": "an execution that ends moves to the history",
    "headway_wake": "the manager deletes what it reads",
    "headway_outbox": "the relay drops what was claimed or has ended when it looks at it again",
    "headway_server": "a process that ends deletes its row; that of a dead one is buried",
    "headway_nonce": "every request that is taken deletes some that are five minutes old",
    "headway_audit": "a peer's query deletes the one ten thousand rows before it",
    "headway_mark": "one row per name, and the names are in the code",
    "headway_schema_version": "one row per migration",
}
NOT_WRITTEN_YET = {
    "headway_blocker_ref",
    "headway_capture_buffer",
    "headway_claim_record",
    "headway_context_snapshot",
    "headway_event",
    "headway_objective",
    "headway_output_bundle",
    "headway_pause_state",
    "headway_run_record",
    "headway_session_manifest",
    "headway_substrate_query",
    "headway_substrate_query_response",
    "headway_workorder",
}


def test_every_table_is_listed_once() -> None:
    listed = [*DELETED_BY, *GOES_WITH, *NEVER_GROWS, *NOT_WRITTEN_YET]
    assert sorted(listed) == sorted(schema.tables)


@pytest.mark.parametrize(("table", "verb"), DELETED_BY.items())
def test_retention_calls_the_verb_that_deletes(table: str, verb: str) -> None:
    assert hasattr(retention, verb), table
    assert f"retention.{verb}" in (SOURCE / "history.py").read_text("utf-8"), table


@pytest.mark.parametrize(("table", "owner"), GOES_WITH.items())
def test_what_goes_with_another_row_is_deleted_by_the_database(table: str, owner: str) -> None:
    rules = {(key.column.table.name, key.ondelete) for key in schema.tables[table].foreign_keys}
    assert (owner, "CASCADE") in rules


@pytest.mark.parametrize("table", sorted(NOT_WRITTEN_YET))
def test_whoever_begins_to_write_a_table_says_here_when_its_rows_go(table: str) -> None:
    name = table.removeprefix("headway_")
    using = [
        str(module.relative_to(SOURCE))
        for module in SOURCE.rglob("*.py")
        if "tables" not in module.parts and name in imported_tables(module)
    ]
    assert using == [], f"{table}: who deletes its rows, and when?"


def imported_tables(module: Path) -> set[str]:
    return {
        alias.name
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("headway.store.tables")
        for alias in node.names
    }
