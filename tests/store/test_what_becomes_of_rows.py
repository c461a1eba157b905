"""No table is forgotten: for each it is written down what becomes of its rows."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from headway.store import artifact_retention, retention
from headway.store.tables import schema

SOURCE = Path(__file__).parents[2] / "src" / "headway"

DELETED_BY = {
    "headway_execution_history": "delete_finished",
    "headway_work_queue": "delete_ended_entries",
    "headway_dead_letter": "delete_resolved_dead_letters",
    "headway_manifest": "delete_removed_manifests",
    "headway_manifest_group": "delete_empty_groups",
    "headway_declaration": "delete_old_declarations",
    "headway_tally": "delete_old_tallies",
}
ARTIFACTS_DELETED_BY = {
    "headway_workorder": "delete_judged_workorders",
    "headway_event": "delete_processed_events",
    "headway_context_snapshot": "delete_unused_snapshots",
    "headway_claim_record": "delete_ended_claims",
    "headway_substrate_query": "delete_old_queries",
    "headway_pause_state": "delete_old_pauses",
    "headway_session_manifest": "delete_old_pages",
    "headway_capture_buffer": "delete_processed_captures",
    "headway_objective": "delete_done_objectives",
    "headway_nonce": "delete_old_nonces",
    "headway_idempotency": "delete_old_answers",
    "headway_logout": "delete_old_logouts",
    "headway_wrong_try": "delete_old_tries",
    "headway_audit": "delete_old_audit",
}
DELETED_TOO = {
    "headway_output_bundle": "delete_judged_workorders",
    "headway_run_record": "delete_judged_workorders",
    "headway_blocker_ref": "delete_done_objectives",
}
GOES_WITH = {
    "headway_substrate_query_response": "headway_substrate_query",
    "headway_manifest_state": "headway_manifest",
    "headway_dependency": "headway_manifest",
}
NEVER_GROWS = {
    "headway_execution": "an execution that ends moves to the history",
    "headway_wake": "the manager deletes what it reads",
    "headway_outbox": "the relay drops what was claimed or has ended when it looks at it again",
    "headway_server": "a process that ends deletes its row; that of a dead one is buried",
    "headway_token": "people make them by hand; revoked ones stay, so that the audit can be read",
    "headway_mark": "one row per name, and the names are in the code",
    "headway_schema_version": "one row per migration",
}


def test_every_table_is_listed_once() -> None:
    listed = [*DELETED_BY, *ARTIFACTS_DELETED_BY, *DELETED_TOO, *GOES_WITH, *NEVER_GROWS]
    assert sorted(listed) == sorted(schema.tables)


@pytest.mark.parametrize(("table", "verb"), DELETED_BY.items())
def test_retention_calls_the_verb_that_deletes(table: str, verb: str) -> None:
    assert hasattr(retention, verb), table
    assert f"retention.{verb}" in (SOURCE / "history" / "retention.py").read_text("utf-8"), table


@pytest.mark.parametrize(("table", "verb"), ARTIFACTS_DELETED_BY.items())
def test_retention_calls_the_verb_that_deletes_artifacts(table: str, verb: str) -> None:
    assert hasattr(artifact_retention, verb), table
    assert f"artifact_retention.{verb}" in (SOURCE / "history" / "retention.py").read_text(
        "utf-8"
    ), table


@pytest.mark.parametrize(("table", "verb"), DELETED_TOO.items())
def test_what_belongs_to_an_artifact_is_deleted_by_the_same_verb(table: str, verb: str) -> None:
    deleted = set(re.findall(r"\w+", inspect.getsource(getattr(artifact_retention, verb))))
    assert table.removeprefix("headway_") in deleted


@pytest.mark.parametrize(("table", "owner"), GOES_WITH.items())
def test_what_goes_with_another_row_is_deleted_by_the_database(table: str, owner: str) -> None:
    rules = {(key.column.table.name, key.ondelete) for key in schema.tables[table].foreign_keys}
    assert (owner, "CASCADE") in rules
