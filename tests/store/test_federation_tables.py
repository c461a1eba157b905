"""The federation's artifacts: what their tables hold, refuse, and never let change."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Boolean, Integer, Table, delete, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from headway.store import tables
from headway.store.engine import Store
from tests.store.factories import NOON, rows_of

# The fields of each artifact, as the protocol lists them; "?" marks one that may be missing.
FIELDS = {
    tables.event: "event_id type resource_id azolla_id created_at processed",
    tables.claim_record: (
        "resource_type resource_id owner_id lease_expires_at heartbeat_at claim_version"
    ),
    tables.context_snapshot: (
        "snapshot_id objective_id related_yield_refs full_prompt_text created_at metadata?"
    ),
    tables.workorder: (
        "work_order_id objective_id diazotroph_type context_snapshot_id branch_name? budget_ms"
        " created_at status"
    ),
    tables.pause_state: "objective_id azolla_id reason prioritized_actions created_at",
    tables.capture_buffer: (
        "capture_id azolla_id raw_content source_label status created_at updated_at"
    ),
    tables.objective: (
        "objective_id azolla_id title acceptance_criteria objective_type status importance urgency"
        " blocked_reason? blocked_on metadata created_at updated_at"
    ),
    tables.blocker_ref: "blocker_id kind description resolved",
    tables.substrate_query: (
        "query_id source_azolla_id target_azolla_id artifact_type filter created_at"
    ),
    tables.substrate_query_response: (
        "response_id query_id target_azolla_id status results created_at"
    ),
    tables.output_bundle: "output_id objective_id title metadata content notes created_at",
    tables.run_record: (
        "run_id work_order_id objective_id output_id gate_result gate_reason created_at"
    ),
    tables.session_manifest: (
        "manifest_id azolla_id queried_azolla_ids pause_state_summary prioritized_orientation"
        " created_at"
    ),
}
# What the tables keep beside the artifact, so that "no duplicates" can be checked.
BESIDE = {
    tables.event: {"terminal_reason", "attempts", "parked_at", "last_error"},
    tables.workorder: {"event_id", "entry_id"},
    tables.pause_state: {"pause_id"},
    tables.output_bundle: {"work_order_id"},
}
ROWS: dict[Table, dict[str, Any]] = {
    tables.event: {"event_id": "e1", "type": "MANIFEST_REQUESTED", "resource_id": "here"},
    tables.claim_record: {
        "resource_type": "EVENT",
        "resource_id": "e1",
        "lease_expires_at": NOON,
        "heartbeat_at": NOON,
        "claim_version": 0,
    },
    tables.context_snapshot: {"snapshot_id": "s1"},
    tables.workorder: {
        "work_order_id": "w1",
        "event_id": "e1",
        "diazotroph_type": "MANIFEST_BUILDER_DIAZOTROPH",
        "context_snapshot_id": "s1",
        "budget_ms": 60_000,
        "status": "CREATED",
    },
    tables.pause_state: {"reason": "RUN_COMPLETE", "prioritized_actions": '["look"]'},
    tables.capture_buffer: {"status": "PENDING", "updated_at": NOON},
    tables.objective: {
        "objective_type": "STANDING",
        "status": "IN_PROGRESS",
        "importance": 4,
        "urgency": 0,
        "updated_at": NOON,
    },
    tables.blocker_ref: {"kind": "USER_INPUT", "resolved": False},
    tables.substrate_query: {"query_id": "q1", "artifact_type": "pause_state"},
    tables.substrate_query_response: {"query_id": "q1", "status": "OK", "results": "[{}]"},
    tables.output_bundle: {"output_id": "o1", "work_order_id": "w1"},
    tables.run_record: {"work_order_id": "w1", "output_id": "o1", "gate_result": "PASS"},
    tables.session_manifest: {"prioritized_orientation": '["begin"]'},
}


def row_of(table: Table, **changes: Any) -> dict[str, Any]:
    """A row of *table*; what the caller did not say is any text."""
    plain = {
        column.name: NOON if column.name == "created_at" else f"some {column.name}"
        for column in table.columns
        if not column.nullable
        and column.server_default is None
        and not isinstance(column.type, Integer | Boolean)
    }
    return plain | ROWS[table] | changes


def write(store: Store, *statements: Any) -> None:
    with store.writing() as tx:
        for statement in statements:
            tx.connection.execute(statement)


class _Undone(Exception):
    """Ends a transaction that was only a trial."""


def try_to_write(store: Store, changed: Table, **changes: Any) -> None:
    """One row of everything, of which one is *changed*: facts cannot be changed afterwards."""
    with suppress(_Undone), store.writing() as tx:
        for table in ROWS:
            row = row_of(table, **(changes if table is changed else {}))
            tx.connection.execute(insert(table).values(**row))
        raise _Undone


@pytest.fixture
def filled(store: Store) -> Store:
    """One row of everything."""
    write(store, *(insert(table).values(**row_of(table)) for table in ROWS))
    return store


@pytest.mark.parametrize("table", FIELDS, ids=lambda table: table.name)
def test_a_table_has_the_fields_of_its_artifact(table: Table) -> None:
    fields = {name.rstrip("?"): name.endswith("?") for name in FIELDS[table].split()}
    kept = {column.name: column.nullable for column in table.columns}
    assert {name: kept[name] for name in fields} == fields
    assert set(kept) - set(fields) == BESIDE.get(table, set())


def test_every_artifact_comes_back_as_it_was_written(filled: Store) -> None:
    for table in ROWS:
        [row] = rows_of(filled, table)
        assert row_of(table).items() <= row.items()


@pytest.mark.parametrize(
    ("table", "column", "allowed", "refused"),
    [
        (tables.event, "type", ["TICKET_READY", "CAPTURE_READY"], ["READY", None]),
        (tables.event, "terminal_reason", [], ["SCHEDULED"]),
        (tables.event, "processed", [], [True]),
        (tables.claim_record, "resource_type", ["WORKORDER"], ["OBJECTIVE"]),
        (tables.claim_record, "claim_version", [0, 2**40], [-1]),
        (tables.workorder, "diazotroph_type", ["PATCH_DIAZOTROPH", "TRIAGE_DIAZOTROPH"], ["X"]),
        (tables.workorder, "status", ["EXECUTED"], ["DONE"]),
        (tables.workorder, "budget_ms", [1], [0]),
        (tables.workorder, "context_snapshot_id", [], ["nowhere"]),
        (tables.pause_state, "reason", ["GATE_FAILED", "BUDGET_EXHAUSTED"], ["BLOCKED"]),
        (tables.pause_state, "prioritized_actions", [], ["[]"]),
        (tables.capture_buffer, "status", ["PROCESSED"], ["DONE"]),
        (tables.objective, "objective_type", ["TICKET"], ["EPIC"]),
        (tables.objective, "status", ["NEW", "TODO", "BLOCKED", "DONE"], ["OPEN"]),
        (tables.objective, "importance", [0, 4], [-1, 5]),
        (tables.objective, "urgency", [0, 4], [-1, 5]),
        (tables.blocker_ref, "kind", ["DESIGN_DECISION"], ["WEATHER"]),
        (tables.blocker_ref, "resolved", [True], [None]),
        (tables.substrate_query, "artifact_type", ["objective", "blocker_ref"], ["workorder"]),
        (tables.substrate_query_response, "status", [], ["DENIED", "MAYBE"]),
        (tables.run_record, "gate_result", ["FAIL"], ["MAYBE"]),
        (tables.session_manifest, "prioritized_orientation", [], ["[]"]),
    ],
    ids=lambda value: value.name if isinstance(value, Table) else str(value),
)
def test_a_column_takes_only_what_the_protocol_names(
    store: Store, table: Table, column: str, allowed: list[Any], refused: list[Any]
) -> None:
    for value in allowed:
        try_to_write(store, table, **{column: value})
    for value in refused:
        with pytest.raises(IntegrityError):
            try_to_write(store, table, **{column: value})


def test_a_processed_event_says_why(store: Store) -> None:
    try_to_write(store, tables.event, processed=True, terminal_reason="SCHEDULED")
    with pytest.raises(IntegrityError):
        try_to_write(store, tables.event, processed=True, terminal_reason="BORED")


def test_an_answer_without_access_is_empty(store: Store) -> None:
    try_to_write(store, tables.substrate_query_response, status="DENIED", results="[]")


@pytest.mark.parametrize(
    "table",
    [
        tables.context_snapshot,
        tables.output_bundle,
        tables.pause_state,
        tables.run_record,
        tables.session_manifest,
        tables.substrate_query,
        tables.substrate_query_response,
    ],
    ids=lambda table: table.name,
)
def test_what_was_seen_and_said_cannot_be_changed(filled: Store, table: Table) -> None:
    before = rows_of(filled, table)
    with pytest.raises(DBAPIError, match="immutable and cannot be changed"):
        write(filled, update(table).values(created_at=NOON + timedelta(days=1)))
    assert rows_of(filled, table) == before


@pytest.mark.parametrize(
    ("table", "ended"),
    [
        (tables.event, {"processed": True, "terminal_reason": "SCHEDULED"}),
        (tables.workorder, {"status": "EXECUTED"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_is_over_does_not_begin_again(
    filled: Store, table: Table, ended: dict[str, Any]
) -> None:
    before = rows_of(filled, table)[0]
    write(filled, update(table).values(**ended))
    with pytest.raises(DBAPIError, match="cannot be changed"):
        write(filled, update(table).values(**{name: before[name] for name in ended}))
    assert ended.items() <= rows_of(filled, table)[0].items()


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        (tables.claim_record, {"owner_id": "another"}),
        (tables.workorder, {"work_order_id": "w2"}),
        (tables.output_bundle, {"output_id": "o2"}),
        (tables.run_record, {"run_id": "r2"}),
        (tables.event, {"type": "TICKET_READY"}),
        (tables.objective, {"objective_id": "another"}),
        (tables.pause_state, {}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_there_is_no_second(filled: Store, table: Table, changes: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        write(filled, insert(table).values(**row_of(table, **changes)))


def test_readiness_is_announced_once_until_it_is_processed(filled: Store) -> None:
    def announce(event_id: str, kind: str) -> Any:
        row = row_of(tables.event, event_id=event_id, type=kind, resource_id="ticket")
        return insert(tables.event).values(**row)

    write(filled, announce("t1", "TICKET_READY"), announce("c1", "CAPTURE_READY"))
    with pytest.raises(IntegrityError):
        write(filled, announce("t2", "TICKET_READY"))
    first = tables.event.c.event_id == "t1"
    write(
        filled, update(tables.event).where(first).values(processed=True, terminal_reason="BLOCKED")
    )
    write(filled, announce("t3", "TICKET_READY"))
    write(filled, announce("m1", "MANIFEST_REQUESTED"), announce("m2", "MANIFEST_REQUESTED"))


def test_what_others_refer_to_cannot_be_deleted(filled: Store) -> None:
    for table in (tables.event, tables.context_snapshot, tables.workorder, tables.output_bundle):
        with pytest.raises(IntegrityError):
            write(filled, delete(table))
    write(filled, delete(tables.substrate_query))
    assert rows_of(filled, tables.substrate_query_response) == []


def test_a_claim_is_renewed_by_comparing_its_version(filled: Store) -> None:
    claim = tables.claim_record
    renew = (
        update(claim)
        .where(claim.c.resource_id == "e1", claim.c.claim_version == 0)
        .values(claim_version=1, heartbeat_at=NOON + timedelta(seconds=5))
    )
    with filled.writing() as tx:
        assert [tx.connection.execute(renew).rowcount for _ in range(2)] == [1, 0]
        assert tx.connection.execute(select(claim.c.claim_version)).scalar_one() == 1
