"""Executing a workorder: any builder, its budget, repeated, taken over, given up."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headway import Run
from headway.domain.azolla.artifacts import ContextSnapshot, ResourceType
from headway.domain.azolla.context import parse_prompt
from headway.domain.azolla.ids import workorder_of
from headway.domain.azolla.page import Page
from headway.domain.execution import ExecutionState
from headway.errors import DefinitionError
from headway.federation.budget import BudgetExhausted, within
from headway.federation.building import (
    WORKFLOW,
    BuildOrder,
    ManifestBuilding,
    give_up_abandoned,
    install,
)
from headway.run import DoNotRetry, RetryAfter
from headway.store import claims, tables
from headway.store.claims import ClaimLost
from tests.federation.azolla import OWN, RULES, Azolla

STEPS = ["claim_workorder", "load_snapshot", "build_manifest", "keep_bundle", "judge_bundle"]


def ordered(azolla: Azolla) -> str:
    """A workorder that waits to be executed."""
    event_id = azolla.request()
    assert azolla.worker().run_once().processed
    return workorder_of(event_id)


def steps_of(azolla: Azolla) -> list[Any]:
    return [getattr(ManifestBuilding(azolla.app), name) for name in STEPS]


def go(azolla: Azolla, order: str, run_id: int, until: str = "") -> Any:
    """Take the steps as the runner does, up to one."""
    claim_workorder, *others = steps_of(azolla)
    value = claim_workorder(BuildOrder(work_order_id=order), Run(run_id, WORKFLOW))
    for step in others:
        if step.__name__ == until:
            break
        value = step(value)
    return value


def results(azolla: Azolla) -> dict[str, int]:
    kinds = (tables.output_bundle, tables.run_record, tables.session_manifest)
    return {table.name.removeprefix("headway_"): len(azolla.rows(table)) for table in kinds}


ALL = {"output_bundle": 1, "run_record": 1, "session_manifest": 1}


def test_the_workflow_has_its_steps_under_one_name(azolla: Azolla) -> None:
    registered = azolla.app.registry.find(WORKFLOW)
    assert [step.name for step in registered.workflow.steps] == STEPS
    assert registered.input_type.name == "BuildOrder"


def test_workers_are_given_its_workflows_once(azolla: Azolla) -> None:
    registry = azolla.app.registry
    names, building = registry.names(), registry.find(WORKFLOW)
    assert {WORKFLOW, "headway.request-manifest"} <= set(names)
    install(azolla.app)
    assert registry.names() == names and registry.find(WORKFLOW) is building


def test_the_run_that_executes_it_holds_it_for_a_lease(azolla: Azolla) -> None:
    azolla.configure(azolla_claim_lease="45s")
    order = ordered(azolla)
    go(azolla, order, 7, "load_snapshot")
    [claim] = [
        row for row in azolla.rows(tables.claim_record) if row["resource_type"] == "WORKORDER"
    ]
    assert (claim["resource_id"], claim["owner_id"]) == (order, "execution-7")
    lasts = claim["lease_expires_at"] - claim["heartbeat_at"]
    assert abs(lasts - timedelta(seconds=45)) < timedelta(seconds=1)


def test_what_it_writes_is_of_the_time_at_which_it_is_written(azolla: Azolla) -> None:
    order = ordered(azolla)
    assert go(azolla, order, 7).startswith("PASS: ")
    ordered_at = azolla.only(tables.workorder)["created_at"]
    kinds = (
        tables.output_bundle,
        tables.run_record,
        tables.session_manifest,
        tables.pause_state,
    )
    for table in kinds:
        assert azolla.only(table)["created_at"] > ordered_at, table.name


def test_a_users_builder_gets_the_snapshot_and_nothing_else(azolla: Azolla) -> None:
    given: list[ContextSnapshot] = []

    @azolla.app.builds_manifests
    async def build(snapshot: ContextSnapshot) -> Page:
        given.append(snapshot)
        return Page(("call the model again",), "# Mine", title="Mine")

    ordered(azolla)
    azolla.execute()
    assert parse_prompt(given[0].full_prompt_text).azolla_id == OWN
    assert azolla.only(tables.output_bundle)["title"] == "Mine"
    page = azolla.only(tables.session_manifest)
    assert json.loads(page["prioritized_orientation"]) == ["call the model again"]
    assert json.loads(page["queried_azolla_ids"]) == [OWN]


def test_only_a_function_can_build(azolla: Azolla) -> None:
    with pytest.raises(DefinitionError, match=r"hw\.builds_manifests takes a function, not str"):
        azolla.app.builds_manifests("build")  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (ValueError("no such model"), "ValueError: no such model"),
        (SystemExit(3), "SystemExit: 3"),
        (None, "manifest builder returned NoneType: must be a Page or a str"),
        ("", "Page orientation = (): must be 1 to 5 lines"),
    ],
)
def test_what_a_builder_does_wrong_is_told_to_a_person(
    azolla: Azolla, returned: Any, said: str
) -> None:
    @azolla.app.builds_manifests
    def build(snapshot: ContextSnapshot) -> Any:
        if isinstance(returned, BaseException):
            raise returned
        return returned

    order = ordered(azolla)
    azolla.execute()
    assert azolla.history.executions.all()[0].state is ExecutionState.COMPLETED
    assert results(azolla) == ALL | {"session_manifest": 0}
    record = azolla.only(tables.run_record)
    assert (record["work_order_id"], record["gate_result"]) == (order, "FAIL")
    assert said in record["gate_reason"]
    bundle = bundle_without_a_page(azolla)
    assert said in bundle["notes"]
    assert bundle["metadata"] == {"queried_azolla_ids": [], "failure": "error"}
    rest = azolla.only(tables.pause_state)
    assert rest["reason"] == "GATE_FAILED"
    assert said in json.loads(rest["prioritized_actions"])[0]
    azolla.app.builds_manifests(lambda snapshot: "mended")
    ordered(azolla)
    azolla.execute()
    assert len(azolla.rows(tables.session_manifest)) == 1, "the line goes on"


def test_a_builder_that_takes_too_long_exhausts_its_budget(azolla: Azolla) -> None:
    endless = threading.Event()
    azolla.app.builds_manifests(lambda snapshot: endless.wait(60))
    azolla.request()
    azolla.worker(rules=replace(RULES, manifest_budget=timedelta(seconds=0.2))).run_once()
    azolla.execute()
    endless.set()
    record = azolla.only(tables.run_record)
    assert (record["gate_result"], record["gate_reason"]) == (
        "FAIL",
        "the builder took longer than its 0.2 s",
    )
    assert azolla.only(tables.pause_state)["reason"] == "BUDGET_EXHAUSTED"
    assert bundle_without_a_page(azolla) == {
        "title": "No manifest",
        "content": "",
        "notes": "the builder took longer than its 0.2 s",
        "metadata": {"queried_azolla_ids": [], "failure": "budget"},
    }


def bundle_without_a_page(azolla: Azolla) -> dict[str, Any]:
    row = azolla.only(tables.output_bundle)
    told = {name: row[name] for name in ("title", "content", "notes")}
    return told | {"metadata": json.loads(row["metadata"])}


def test_the_claim_is_renewed_while_it_builds_and_losing_it_ends_the_building() -> None:
    calls: list[None] = []
    done = threading.Event()

    def meanwhile() -> None:
        calls.append(None)
        if len(calls) == 3:
            done.set()

    assert within(60, lambda: done.wait(60), 0.01, meanwhile) is True

    def lose() -> None:
        raise ClaimLost("LEASE_LOST")

    endless = threading.Event()
    with pytest.raises(ClaimLost):
        within(60, lambda: endless.wait(60), 0.01, lose)
    endless.set()


def test_a_budget_ends_what_never_ends() -> None:
    endless = threading.Event()
    with pytest.raises(BudgetExhausted, match=r"longer than its 0\.05 s"):
        within(0.05, lambda: endless.wait(60), 1, lambda: None)
    endless.set()


@pytest.mark.parametrize("until", [*STEPS[1:], ""])
def test_whoever_repeats_it_makes_nothing_twice(azolla: Azolla, until: str) -> None:
    order = ordered(azolla)
    go(azolla, order, 7, until)
    expire(azolla)
    go(azolla, order, 8)
    assert results(azolla) == ALL
    assert azolla.only(tables.workorder)["status"] == "EXECUTED"
    before = azolla.rows(tables.pause_state)
    assert go(azolla, order, 9) == "judged before"
    assert (results(azolla), azolla.rows(tables.pause_state)) == (ALL, before)


def test_what_is_built_already_is_not_built_again(azolla: Azolla) -> None:
    built: list[str] = []

    @azolla.app.builds_manifests
    def build(snapshot: ContextSnapshot) -> str:
        built.append(snapshot.snapshot_id)
        return "look at load-users"

    order = ordered(azolla)
    go(azolla, order, 7, "judge_bundle")
    expire(azolla)
    assert go(azolla, order, 8).startswith("PASS: ")
    assert len(built) == 1


@pytest.mark.parametrize("until", STEPS[2:])
def test_whoever_was_taken_over_from_writes_nothing(azolla: Azolla, until: str) -> None:
    order = ordered(azolla)
    paused = go(azolla, order, 7, until)
    expire(azolla)
    go(azolla, order, 8)
    steps = {step.__name__: step for step in steps_of(azolla)}
    before = {table.name: azolla.rows(table) for table in WRITTEN}
    for name in STEPS[STEPS.index(until) :]:
        try:
            paused = steps[name](paused)
        except ClaimLost:
            break
    else:
        raise AssertionError("nobody told it that it lost its claim")
    assert name == ("judge_bundle" if until == "judge_bundle" else "keep_bundle")
    assert {table.name: azolla.rows(table) for table in WRITTEN} == before


WRITTEN = (
    tables.workorder,
    tables.output_bundle,
    tables.run_record,
    tables.session_manifest,
    tables.pause_state,
)


def test_while_somebody_else_executes_it_a_run_comes_again_later(azolla: Azolla) -> None:
    order = ordered(azolla)
    with azolla.store.writing() as tx:
        assert claims.acquire(tx, ResourceType.WORKORDER, order, "another", timedelta(seconds=30))
    with pytest.raises(RetryAfter, match="somebody else executes") as later:
        go(azolla, order, 7)
    assert later.value.delay == azolla.app.settings.azolla_claim_lease
    azolla.execute()
    [failed] = azolla.history.executions.all()
    assert failed.state is ExecutionState.FAILED
    [again] = azolla.history.queue.all()
    assert again.workflow == WORKFLOW
    assert results(azolla) == {"output_bundle": 0, "run_record": 0, "session_manifest": 0}


def test_an_order_that_is_not_there_is_not_tried_again(azolla: Azolla) -> None:
    with pytest.raises(DoNotRetry, match="there is no workorder 'nowhere'"):
        go(azolla, "nowhere", 7)


def test_what_nobody_executes_any_more_is_given_up_and_the_line_goes_on(azolla: Azolla) -> None:
    order = ordered(azolla)
    with azolla.store.writing() as tx:
        assert give_up_abandoned(tx, "its run was lost") == [], "it is queued"
    azolla.dispatch()
    with azolla.store.writing() as tx:
        assert give_up_abandoned(tx, "its run was lost") == [], "it is about to run"
    [one] = azolla.history.executions.all()
    azolla.app.cancel(execution=one.id)
    azolla.request()
    assert azolla.worker().run_once().processed, "the worker has given it up"
    [record] = azolla.rows(tables.run_record)
    assert (record["work_order_id"], record["gate_result"]) == (order, "FAIL")
    assert "nobody will execute it any more" in record["gate_reason"]
    assert azolla.events.named("azolla.given_up")[0].fields["workorder"] == order


def expire(azolla: Azolla) -> None:
    """The lease of whoever holds a claim is over."""
    claim = tables.claim_record
    with azolla.store.writing() as tx:
        tx.connection.execute(claim.update().values(lease_expires_at=tx.now - timedelta(seconds=1)))
