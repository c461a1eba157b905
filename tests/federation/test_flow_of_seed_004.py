"""Seed 004's flow, step by step: what every artifact looks like after each of the eight steps."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import ResponseStatus
from headway.domain.azolla.context import FORMAT_RULES, parse_prompt
from headway.domain.execution import ExecutionState
from headway.federation.tick import Tick, WorkerEnv
from headway.federation.worker import MANIFEST_SCHEDULER_WORKER
from headway.store import claims, tables
from tests.federation.azolla import (
    OWN,
    Azolla,
    answering,
    objective,
    pause,
    refusing,
)

STEPS = [
    "pick_event",
    "claim_event",
    "query_azollas",
    "read_local_state",
    "build_context_snapshot",
    "create_workorder",
    "mark_processed",
    "release_claim",
]
ARTIFACTS = {
    "events": tables.event,
    "claims": tables.claim_record,
    "queries": tables.substrate_query,
    "responses": tables.substrate_query_response,
    "snapshots": tables.context_snapshot,
    "workorders": tables.workorder,
    "entries": tables.work_queue,
    "bundles": tables.output_bundle,
    "records": tables.run_record,
    "pages": tables.session_manifest,
}


class Flow:
    """Takes the steps one at a time and counts what stands after each."""

    def __init__(self, azolla: Azolla) -> None:
        self.azolla = azolla
        self.env: WorkerEnv = azolla.env()
        self.tick = Tick()
        self._left = list(MANIFEST_SCHEDULER_WORKER.steps)

    def step(self) -> Tick:
        step = self._left.pop(0)
        self.tick = step.function(*step.arguments(self.tick, self.env))
        return self.tick

    def counts(self) -> dict[str, int]:
        found = {name: len(self.azolla.rows(table)) for name, table in ARTIFACTS.items()}
        return {name: count for name, count in found.items() if count}


@pytest.fixture
def flow(azolla: Azolla) -> Flow:
    azolla.peers = {
        "sales": answering(
            objective("sales", urgency=4), pause("sales", "requeue load-orders", "tell finance")
        ),
        "shop": refusing(ResponseStatus.DENIED, "we do not show that"),
        "mill": refusing(ResponseStatus.TARGET_UNAVAILABLE, "connection refused"),
    }
    azolla.pause("pause-1", "look at load-users")
    azolla.capture("c1")
    azolla.capture("c2")
    return Flow(azolla)


def test_the_eight_steps_have_the_seeds_order() -> None:
    assert [step.name for step in MANIFEST_SCHEDULER_WORKER.steps] == STEPS


def test_what_every_artifact_is_after_each_step(flow: Flow) -> None:
    azolla, event_id = flow.azolla, flow.azolla.request()
    event = azolla.only(tables.event)
    assert (event["type"], event["resource_id"], event["processed"]) == (
        "MANIFEST_REQUESTED",
        OWN,
        False,
    )

    # 1. Pick the oldest unprocessed event.
    later = azolla.request()
    assert [one.event.event_id for one in flow.step().candidates] == [event_id, later]
    assert flow.counts() == {"events": 2}

    # 2. Claim it.
    assert flow.step().event is not None
    claim = azolla.only(tables.claim_record)
    assert (claim["resource_type"], claim["resource_id"], claim["owner_id"]) == (
        "EVENT",
        event_id,
        "me",
    )
    assert claim["claim_version"] == 0
    lasts = claim["lease_expires_at"] - claim["heartbeat_at"]
    assert abs(lasts - flow.env.rules.lease) < timedelta(seconds=1)
    assert flow.counts() == {"events": 2, "claims": 1}

    # 3. Ask every azolla of the registry, and note who does not answer.
    flow.step()
    assert flow.counts() == {"events": 2, "claims": 1, "queries": 8, "responses": 8}
    asked = {(row["target_azolla_id"], row["artifact_type"]) for row in queries(azolla)}
    assert asked == {
        (name, kind)
        for name in (OWN, "sales", "shop", "mill")
        for kind in ("pause_state", "objective")
    }
    assert {row["source_azolla_id"] for row in queries(azolla)} == {OWN}
    responses = azolla.rows(tables.substrate_query_response)
    statuses = {row["target_azolla_id"]: row["status"] for row in responses}
    assert statuses == {
        OWN: "OK",
        "sales": "OK",
        "shop": "DENIED",
        "mill": "TARGET_UNAVAILABLE",
    }
    assert all(row["results"] == "[]" for row in responses if row["status"] != "OK")

    # 4. Read what this deployment knows itself.
    local = flow.step().local
    assert local is not None
    assert (local.objective_id, local.pending_captures) == ("standing", 2)
    assert [(one.azolla_id, one.urgency) for one in local.urgency] == [(OWN, 1)]
    assert flow.counts() == {"events": 2, "claims": 1, "queries": 8, "responses": 8}

    # 5. Freeze it.
    flow.step()
    snapshot = azolla.only(tables.context_snapshot)
    assert snapshot["snapshot_id"] == ids.snapshot_of(event_id)
    assert (snapshot["objective_id"], snapshot["related_yield_refs"]) == ("standing", "[]")
    assert json.loads(snapshot["metadata"]) == {
        "event_id": event_id,
        "asked": [OWN, "sales", "shop", "mill"],
    }
    check_prompt(snapshot["full_prompt_text"], event_id)

    # 6. Order the page, and queue it.
    flow.step()
    order = azolla.only(tables.workorder)
    assert order["work_order_id"] == ids.workorder_of(event_id)
    assert order["diazotroph_type"] == "MANIFEST_BUILDER_DIAZOTROPH"
    assert order["context_snapshot_id"] == snapshot["snapshot_id"]
    assert (order["objective_id"], order["branch_name"]) == ("standing", None)
    assert (order["budget_ms"], order["status"]) == (60_000, "CREATED")
    entry = azolla.only(tables.work_queue)
    assert entry["id"] == order["entry_id"]
    assert json.loads(entry["input"]) == {"work_order_id": order["work_order_id"]}
    assert (entry["workflow"], entry["source"]) == ("headway.manifest-builder", "ad_hoc")
    assert (entry["input_type"], entry["max_attempts"]) == ("BuildOrder", 10)
    assert not states(azolla)[event_id]["processed"]

    # 7. Mark the event processed.
    flow.step()
    assert states(azolla)[event_id] == {"processed": True, "terminal_reason": "SCHEDULED"}
    assert states(azolla)[later] == {"processed": False, "terminal_reason": None}
    with azolla.store.writing() as tx:
        claims.fence(tx, held(flow))

    # 8. Release the claim.
    flow.step()
    with azolla.store.writing() as tx, pytest.raises(claims.ClaimLost):
        claims.fence(tx, held(flow))
    assert flow.counts() == {
        "events": 2,
        "claims": 1,
        "queries": 8,
        "responses": 8,
        "snapshots": 1,
        "workorders": 1,
        "entries": 1,
    }


def test_from_workorder_to_page(flow: Flow) -> None:
    azolla, event_id = flow.azolla, flow.azolla.request()
    for _ in STEPS:
        flow.step()
    azolla.execute()
    assert azolla.history.executions.all()[0].state is ExecutionState.COMPLETED

    order_id = ids.workorder_of(event_id)
    assert azolla.only(tables.workorder)["status"] == "EXECUTED"
    bundle = azolla.only(tables.output_bundle)
    assert (bundle["output_id"], bundle["work_order_id"]) == (ids.output_of(order_id), order_id)
    assert json.loads(bundle["metadata"])["queried_azolla_ids"] == ["sales", OWN]
    assert "shop did not answer: DENIED (we do not show that)" in bundle["notes"]
    assert "mill did not answer: TARGET_UNAVAILABLE (connection refused)" in bundle["content"]

    record = azolla.only(tables.run_record)
    assert (record["run_id"], record["gate_result"]) == (ids.run_of(order_id), "PASS")
    rest = next(
        row
        for row in azolla.rows(tables.pause_state)
        if row["pause_id"] == ids.pause_after(order_id)
    )
    assert (rest["reason"], rest["objective_id"]) == ("RUN_COMPLETE", "standing")
    page = azolla.only(tables.session_manifest)
    orientation = json.loads(page["prioritized_orientation"])
    assert orientation == ["sales: requeue load-orders", f"{OWN}: look at load-users"]
    assert json.loads(rest["prioritized_actions"]) == orientation
    assert json.loads(page["queried_azolla_ids"]) == ["sales", OWN]
    assert [one["source_azolla_id"] for one in json.loads(page["pause_state_summary"])] == [
        OWN,
        "sales",
    ]
    with azolla.store.writing() as tx:
        [claim] = [
            row for row in azolla.rows(tables.claim_record) if row["resource_type"] == "WORKORDER"
        ]
        assert claim["lease_expires_at"] <= tx.now, "released"
    assert azolla.rows(tables.objective)[0]["status"] == "IN_PROGRESS", "it stands for ever"


def test_without_an_event_a_tick_does_nothing(azolla: Azolla) -> None:
    result = azolla.worker().run_once()
    assert (result.event_id, result.worked, azolla.asked) == (None, False, [])
    assert azolla.rows(tables.claim_record) == []


def test_an_event_somebody_works_on_is_skipped_for_the_next(azolla: Azolla) -> None:
    first, second = azolla.request(), azolla.request()
    held_elsewhere = azolla.env("another")
    tick = Tick()
    for step in MANIFEST_SCHEDULER_WORKER.steps[:2]:
        tick = step.function(*step.arguments(tick, held_elsewhere))
    assert tick.event is not None and tick.event.event_id == first
    assert azolla.worker().run_once().event_id == second


def check_prompt(text: str, event_id: str) -> None:
    """The rules, then every answer with its status, the captures, and how urgent what is."""
    assert text.startswith(FORMAT_RULES)
    context = parse_prompt(text)
    assert (context.event_id, context.azolla_id, context.pending_captures) == (event_id, OWN, 2)
    assert len(context.answers) == 8
    by_name = {(one.azolla_id, str(one.artifact_type)): one for one in context.answers}
    assert by_name["shop", "objective"].status is ResponseStatus.DENIED
    assert by_name["mill", "pause_state"].note == "connection refused"
    [seen] = by_name["sales", "pause_state"].pause_states()
    assert seen.prioritized_actions == ("requeue load-orders", "tell finance")
    assert [(one.azolla_id, one.urgency) for one in context.local_urgency] == [(OWN, 1)]
    assert [(one.azolla_id, one.urgency) for one in context.queried_urgency] == [("sales", 4)]


def queries(azolla: Azolla) -> list[dict[str, Any]]:
    return azolla.rows(tables.substrate_query)


def states(azolla: Azolla) -> dict[str, dict[str, Any]]:
    return {
        row["event_id"]: {name: row[name] for name in ("processed", "terminal_reason")}
        for row in azolla.rows(tables.event)
    }


def held(flow: Flow) -> Any:
    assert flow.tick.claim is not None
    return flow.tick.claim
