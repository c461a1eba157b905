"""The one sentence about a manifest, an entry or a run, and the gates of a pending run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.answers import (
    about_entry,
    about_execution,
    about_manifest,
    going_on,
    start_gates,
)
from headway.domain.execution import ExecutionState, Failure
from headway.domain.gates import Gate, GateName, Stage
from tests.domain.rows import NOON, an_execution

QUEUE = Gate(GateName.ENABLED, Stage.QUEUE, False, "it is disabled", "when it is enabled")
DISPATCH = Gate(GateName.GROUP_CAP, Stage.DISPATCH, False, "its group is full", "when one ends")
START = Gate(GateName.WORKER, Stage.START, False, "no worker is alive", "when one is started")
PASSED = Gate(GateName.ENABLED, Stage.QUEUE, True, "the manifest is enabled")


def test_a_run_without_a_manifest_is_called_after_its_workflow() -> None:
    told = about_execution(an_execution(external_id=None), [])
    ending = "is dispatched as execution 41: the next free worker starts it"
    assert told == f"a run of load {ending}"


def test_of_a_manifest_the_first_gate_that_is_not_passed_is_named() -> None:
    disabled = "load does not run because it is disabled; it can when it is enabled"
    full = "load does not run because its group is full; it can when one ends"
    assert about_manifest("load", [DISPATCH, PASSED, QUEUE], None) == disabled
    assert about_manifest("load", [PASSED, DISPATCH], None) == full
    due = "load is due: the next cycle of the manager queues it"
    assert about_manifest("load", [PASSED], None) == due


def test_of_an_entry_only_the_gates_of_the_dispatcher_count() -> None:
    full = "load does not run because its group is full; it can when one ends"
    queued = "load is queued as entry 7: the next cycle of the dispatcher dispatches it"
    assert about_entry("load", [QUEUE, DISPATCH], 7) == full
    assert about_entry("load", [QUEUE], 7) == queued
    assert about_manifest("load", [QUEUE, DISPATCH], 7) == full
    assert about_manifest("load", [QUEUE], 7) == queued


def test_of_a_pending_run_only_the_gates_of_the_worker_count() -> None:
    told = about_execution(an_execution(), [QUEUE, DISPATCH, START])
    because = "no worker is alive; it can when one is started"
    assert told == f"load-users does not run because {because}"
    ending = "is dispatched as execution 41: the next free worker starts it"
    assert about_execution(an_execution(), [QUEUE]) == f"load-users {ending}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "execution 41, dispatched at 2030-01-07 12:00:00 UTC"),
        (
            {"started_at": NOON + timedelta(minutes=1)},
            "execution 41 since 2030-01-07 12:01:00 UTC",
        ),
        (
            {"started_at": NOON, "running_step": "read", "cancel_requested": True},
            "execution 41 since 2030-01-07 12:00:00 UTC, in step 'read', asked to stop",
        ),
    ],
)
def test_what_goes_on(changes: dict[str, Any], words: str) -> None:
    running = an_execution(ExecutionState.IN_PROGRESS, **changes)
    assert going_on(running) == words
    assert about_execution(running, [START]) == f"load-users is running: {words}"


@pytest.mark.parametrize(
    ("state", "changes", "words"),
    [
        (ExecutionState.COMPLETED, {"finished_at": NOON}, "completed at 2030-01-07 12:00:00 UTC"),
        (ExecutionState.HANDED_BACK, {}, "handed back"),
        (
            ExecutionState.FAILED,
            {"finished_at": NOON, "failure": Failure("read", "ValueError", "no rows\nat all")},
            "failed at 2030-01-07 12:00:00 UTC (read: ValueError: no rows)",
        ),
    ],
)
def test_what_has_ended(state: ExecutionState, changes: dict[str, Any], words: str) -> None:
    told = about_execution(an_execution(state, **changes), [START])
    assert told == f"execution 41 of load-users has ended: {words}"


def test_a_pending_run_of_another_task_server_waits_for_it() -> None:
    sent = an_execution(task_server="gpu")
    until = "when it does"
    waits = "task server 'gpu' has not started it yet"
    assert start_gates(sent, True, 2, 0) == [
        Gate(GateName.CLAIMED, Stage.START, False, waits, until)
    ]
    away = "task server 'gpu' does not answer (no route), and has not started it yet"
    assert start_gates(sent, True, 2, 0, "no route") == [
        Gate(GateName.CLAIMED, Stage.START, False, away, until)
    ]


@pytest.mark.parametrize(
    ("slots", "sentence", "until"),
    [
        (0, "no worker is alive", "when one is started"),
        (2, "no living worker takes its workflow", "when one is started that does"),
    ],
)
def test_a_pending_run_that_no_worker_takes(slots: int, sentence: str, until: str) -> None:
    assert start_gates(an_execution(), False, slots, 0) == [
        Gate(GateName.WORKER, Stage.START, False, sentence, until)
    ]


def test_a_pending_run_waits_for_a_free_worker() -> None:
    known = Gate(GateName.WORKER, Stage.START, True, "a living worker takes its workflow")
    name, until = GateName.FREE_WORKER, "when one of their runs ends"
    free = Gate(name, Stage.START, True, "a worker is free (1 of 2 slots)")
    busy = Gate(name, Stage.START, False, "all workers are busy (2 of 2 slots)", until)
    assert start_gates(an_execution(), True, 2, 1) == [known, free]
    assert start_gates(an_execution(), True, 2, 2) == [known, busy]
