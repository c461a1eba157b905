"""Everything an operator can do, in one table, on one small deployment."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from headway.definition.operating import Operator
from headway.definition.requests import request_page
from headway.definition.runtime import Runtime
from headway.domain.azolla.artifacts import (
    BlockerKind,
    BlockerRef,
    CaptureBuffer,
    Event,
    EventType,
)
from headway.store import captures, dead_letters, events, objectives
from headway.store.dead_letters import NewDeadLetter
from headway.store.tables import audit, schema
from headway.store.transaction import Transaction
from tests.builders import Scene
from tests.runtime_verbs import FINISHED, runtime_of, set_the_scene

MADE_UP = re.compile(r"\b(capture|objective|blocker|event|pause)-[0-9a-f-]{12,}")
BUSY = 2
OBJECTIVE, BLOCKER, CAPTURE, EVENT = "clean-staging", "blocker-here", "capture-here", "event-here"


@dataclass(frozen=True)
class Operation:
    """A verb that an operator and the Python API have in common, and what the audit says of it."""

    call: Callable[[Any], Any]
    action: str
    subject: str


OPERATIONS: dict[str, Operation] = {
    "trigger": Operation(
        lambda on: on.trigger("report", delay=timedelta(minutes=5)), "manifest.trigger", "report"
    ),
    "trigger_group": Operation(lambda on: on.trigger_group("loads"), "group.trigger", "loads"),
    "enqueue": Operation(lambda on: on.enqueue("work"), "workflow.enqueue", "work"),
    "rerun": Operation(lambda on: on.rerun(FINISHED), "execution.rerun", "1"),
    "cancel a manifest": Operation(
        lambda on: cancel(on, external_id="extract"), "manifest.cancel", "extract"
    ),
    "cancel a group": Operation(lambda on: cancel(on, group="loads"), "group.cancel", "loads"),
    "cancel an execution": Operation(
        lambda on: cancel(on, execution=BUSY), "execution.cancel", "2"
    ),
    "cancel an entry": Operation(lambda on: cancel(on, entry=2), "entry.cancel", "2"),
    "enable": Operation(lambda on: on.enable("resting"), "manifest.enable", "resting"),
    "disable": Operation(lambda on: on.disable("extract"), "manifest.disable", "extract"),
    "set_group": Operation(
        lambda on: on.set_group("reports", max_active_jobs=2, priority=9, enabled=False),
        "group.set",
        "reports",
    ),
    "unschedule": Operation(lambda on: on.unschedule("extract"), "manifest.unschedule", "extract"),
    "requeue": Operation(lambda on: on.dead_letters.requeue(1, "back"), "dead_letter.requeue", "1"),
    "requeue_many": Operation(
        lambda on: on.dead_letters.requeue_many([1, 2]), "dead_letter.requeue", "several"
    ),
    "requeue_all": Operation(
        lambda on: on.dead_letters.requeue_all(workflow="work"), "dead_letter.requeue", "all"
    ),
    "acknowledge": Operation(
        lambda on: on.dead_letters.acknowledge(1, "known"), "dead_letter.acknowledge", "1"
    ),
    "acknowledge_many": Operation(
        lambda on: on.dead_letters.acknowledge_many([1, 2]), "dead_letter.acknowledge", "several"
    ),
    "acknowledge_all": Operation(
        lambda on: on.dead_letters.acknowledge_all("known", group="loads"),
        "dead_letter.acknowledge",
        "all",
    ),
    "capture": Operation(
        lambda on: on.azolla.capture("orders look low", source="alice"), "capture.add", "alice"
    ),
    "mark_processed": Operation(
        lambda on: on.azolla.mark_processed(CAPTURE), "capture.process", CAPTURE
    ),
    "objective": Operation(
        lambda on: on.azolla.objective("sweep", objective_id="sweep", urgency=3),
        "objective.add",
        "sweep",
    ),
    "update": Operation(
        lambda on: on.azolla.update(OBJECTIVE, status="DONE"), "objective.update", OBJECTIVE
    ),
    "block": Operation(
        lambda on: on.azolla.block(OBJECTIVE, "USER_INPUT", "which?"), "objective.block", OBJECTIVE
    ),
    "resolve": Operation(lambda on: on.azolla.resolve(BLOCKER), "blocker.resolve", BLOCKER),
    "unpark": Operation(lambda on: on.azolla.unpark(EVENT), "event.unpark", EVENT),
    "request_manifest": Operation(
        lambda on: on.request_manifest() if isinstance(on, Operator) else request_page(on),
        "session_manifest.request",
        "tests",
    ),
}


def cancel(on: Runtime | Operator, **chosen: Any) -> Any:
    if isinstance(on, Operator):
        return on.cancel(chosen.pop("external_id", None), **chosen)
    wanted: dict[str, Any] = dict.fromkeys(("external_id", "group", "execution", "entry", "reason"))
    return on.cancelling.cancel(**wanted | chosen)


def open_for_business(scene: Scene) -> None:
    """Declare, run and break something, so that every operation finds what it is about."""
    set_the_scene(scene)
    runtime = runtime_of(scene)
    runtime.azolla.objective("clean the staging tables", objective_id=OBJECTIVE)
    scene.trigger("load")
    scene.dispatch()
    scene.claim()
    with scene.store.writing() as tx:
        letters = [NewDeadLetter(scene.ids_of(name)[0], "broken", 1) for name in ("load", "report")]
        dead_letters.create(tx, letters)
        _write_artifacts(tx)


def _write_artifacts(tx: Transaction) -> None:
    note = CaptureBuffer(
        capture_id=CAPTURE,
        azolla_id="tests",
        raw_content="orders look low",
        source_label="standup",
        created_at=tx.now,
        updated_at=tx.now,
    )
    captures.add(tx, note)
    blocker = BlockerRef(blocker_id=BLOCKER, kind=BlockerKind.USER_INPUT, description="which?")
    objectives.block(tx, OBJECTIVE, blocker)
    asked = Event(
        event_id=EVENT,
        type=EventType.MANIFEST_REQUESTED,
        resource_id="tests",
        azolla_id="tests",
        created_at=tx.now,
    )
    events.announce(tx, asked)
    events.park(tx, EVENT)


def everything(scene: Scene) -> dict[str, list[str]]:
    """All rows of all tables but the audit, without ids that are made up and times measured."""
    with scene.store.reading() as tx:
        return {
            table.name: sorted(
                MADE_UP.sub(r"\1-…", str({**row, "steps": None}))
                for row in tx.connection.execute(select(table)).mappings()
            )
            for table in schema.sorted_tables
            if table is not audit
        }


def noted(scene: Scene) -> list[Any]:
    """The audit, oldest first."""
    with scene.store.reading() as tx:
        return list(tx.connection.execute(select(audit).order_by(audit.c.id)).all())
