"""Workorders and what comes of them: one after the other, and each written once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.azolla.artifacts import (
    ContextSnapshot,
    DiazotrophType,
    Event,
    EventType,
    GateResult,
    OutputBundle,
    PauseReason,
    PauseState,
    RunRecord,
    SessionManifest,
    Workorder,
    WorkorderStatus,
)
from headway.domain.azolla.ids import run_of, session_of, workorder_of
from headway.domain.work_queue import NewEntry, Source
from headway.store import events, work_queue, workorders
from headway.store.engine import Store
from headway.store.tables import execution, pause_state
from headway.store.tables import work_queue as queue_table
from headway.store.tables import workorder as order_table
from headway.store.workorders import Judged
from tests.store.factories import NOON, rows_of

MINUTE = timedelta(minutes=1)
ENTRY = NewEntry("build", Source.AD_HOC, "null")


def snapshot_of(event_id: str) -> ContextSnapshot:
    return ContextSnapshot(
        snapshot_id=f"snapshot-{event_id}",
        objective_id="standing",
        related_yield_refs=("y1",),
        full_prompt_text="build it",
        created_at=NOON,
        metadata={"a": 1},
    )


def order_of(event_id: str, minutes: int = 0, **changes: Any) -> Workorder:
    fields: dict[str, Any] = {
        "work_order_id": workorder_of(event_id),
        "objective_id": "standing",
        "diazotroph_type": DiazotrophType.MANIFEST_BUILDER,
        "context_snapshot_id": f"snapshot-{event_id}",
        "branch_name": None,
        "budget_ms": 1000,
        "created_at": NOON + minutes * MINUTE,
    }
    return Workorder(**fields | changes)


def bundle_of(event_id: str, **changes: Any) -> OutputBundle:
    fields: dict[str, Any] = {
        "output_id": f"output-{event_id}",
        "objective_id": "standing",
        "title": "a page",
        "metadata": {"b": 2},
        "content": "[]",
        "notes": "none",
        "created_at": NOON,
    }
    return OutputBundle(**fields | changes)


def record_of(event_id: str, minutes: int = 0) -> RunRecord:
    order = workorder_of(event_id)
    return RunRecord(
        run_id=run_of(order),
        work_order_id=order,
        objective_id="standing",
        output_id=f"output-{event_id}",
        gate_result=GateResult.PASS,
        gate_reason="fine",
        created_at=NOON + minutes * MINUTE,
    )


def page_of(event_id: str) -> SessionManifest:
    return SessionManifest(
        manifest_id=session_of(workorder_of(event_id)),
        azolla_id="warehouse",
        queried_azolla_ids=("sales",),
        pause_state_summary=(),
        prioritized_orientation=("look at it",),
        created_at=NOON,
    )


PAUSE = PauseState(
    objective_id="standing",
    azolla_id="warehouse",
    reason=PauseReason.RUN_COMPLETE,
    prioritized_actions=("look at it",),
    created_at=NOON,
)


def create(store: Store, event_id: str, minutes: int = 0) -> Workorder | None:
    with store.writing() as tx:
        event = Event(
            event_id=event_id,
            type=EventType.MANIFEST_REQUESTED,
            resource_id="warehouse",
            azolla_id="warehouse",
            created_at=NOON,
        )
        events.announce(tx, event)
        assert workorders.keep_snapshot(tx, snapshot_of(event_id)) == snapshot_of(event_id)
        return workorders.create(tx, event_id, order_of(event_id, minutes), ENTRY)


def execute(store: Store, event_id: str) -> None:
    with store.writing() as tx:
        order, bundle = order_of(event_id), bundle_of(event_id)
        assert workorders.execute(tx, order, bundle) == bundle


def judge(store: Store, event_id: str, minutes: int = 0, *, passed: bool = True) -> None:
    with store.writing() as tx:
        page = page_of(event_id) if passed else None
        workorders.judge(tx, record_of(event_id, minutes), f"pause-{event_id}", PAUSE, page)


def test_a_workorder_is_written_with_its_entry(store: Store) -> None:
    assert create(store, "e1") == order_of("e1")
    [row] = rows_of(store, order_table)
    [entry] = rows_of(store, queue_table)
    assert (row["event_id"], row["entry_id"]) == ("e1", entry["id"])
    assert create(store, "e1") == order_of("e1"), "it stands already"
    assert len(rows_of(store, queue_table)) == 1
    with store.reading() as tx:
        assert workorders.find(tx, workorder_of("e1")) == order_of("e1")
        assert workorders.find(tx, "nobody's") is None
        assert workorders.find_snapshot(tx, "snapshot-e1") == snapshot_of("e1")


def test_one_manifest_is_built_after_the_other(store: Store) -> None:
    def building() -> str | None:
        with store.reading() as tx:
            return workorders.open_event(tx)

    assert building() is None
    create(store, "e1")
    assert create(store, "e2") is None
    assert building() == "e1"
    execute(store, "e1")
    assert building() == "e1", "it is not judged yet"
    assert create(store, "e2") is None
    judge(store, "e1")
    assert building() is None
    assert create(store, "e2") is not None


def test_what_came_of_it_is_written_once(store: Store) -> None:
    create(store, "e1")
    execute(store, "e1")
    with store.writing() as tx:
        other = bundle_of("e1", output_id="output-other", title="another page")
        assert workorders.execute(tx, order_of("e1"), other) == bundle_of("e1")
        ended = workorders.find(tx, workorder_of("e1"))
        assert ended == order_of("e1", status=WorkorderStatus.EXECUTED)
        assert workorders.find_output(tx, workorder_of("e1")) == bundle_of("e1")
        assert workorders.find_run(tx, workorder_of("e1")) is None
        kept = snapshot_of("e1").model_copy(update={"full_prompt_text": "another"})
        assert workorders.keep_snapshot(tx, kept) == snapshot_of("e1")


def test_the_newest_judgement_comes_with_all_it_is_about(store: Store) -> None:
    with store.reading() as tx:
        assert workorders.newest_judged(tx) is None
    for event_id, minutes, passed in (("e1", 2, True), ("e2", 5, False), ("e3", 1, True)):
        create(store, event_id)
        execute(store, event_id)
        judge(store, event_id, minutes, passed=passed)
    with store.reading() as tx:
        assert workorders.newest_judged(tx) == Judged(record_of("e2", 5), bundle_of("e2"), None)
        first = workorders.newest_judged(tx, "e1")
        assert first == Judged(record_of("e1", 2), bundle_of("e1"), page_of("e1"))
        assert workorders.newest_judged(tx, "e4") is None
        assert workorders.find_run(tx, workorder_of("e1")) == record_of("e1", 2)
    pauses = {row["pause_id"] for row in rows_of(store, pause_state)}
    assert pauses == {"pause-e1", "pause-e2", "pause-e3"}


@pytest.mark.parametrize(
    ("status", "lost"), [("queued", False), ("held", False), ("cancelled", True), ("failed", True)]
)
def test_an_order_whose_entry_has_ended_is_abandoned(store: Store, status: str, lost: bool) -> None:
    create(store, "e1")
    ended = {} if status in ("queued", "held") else {"ended_at": NOON}
    with store.writing() as tx:
        tx.connection.execute(queue_table.update().values(status=status, **ended))
        assert workorders.abandoned(tx) == ([order_of("e1")] if lost else [])


def test_an_order_that_runs_or_is_judged_is_not_abandoned(store: Store) -> None:
    create(store, "e1")
    [entry] = rows_of(store, queue_table)
    with store.writing() as tx:
        work_queue.dispatch(tx, [entry["id"]])
        assert workorders.abandoned(tx) == []
        tx.connection.execute(execution.delete())
        assert workorders.abandoned(tx) == [order_of("e1")]
    execute(store, "e1")
    judge(store, "e1")
    with store.reading() as tx:
        assert workorders.abandoned(tx) == []


def test_orders_of_another_kind_go_their_own_way(store: Store) -> None:
    patch = order_of("e1", diazotroph_type=DiazotrophType.PATCH)
    with store.writing() as tx:
        request = Event(
            event_id="e1",
            type=EventType.TICKET_READY,
            resource_id="ticket",
            azolla_id="warehouse",
            created_at=NOON,
        )
        events.announce(tx, request)
        workorders.keep_snapshot(tx, snapshot_of("e1"))
        assert workorders.create(tx, "e1", patch, ENTRY) == patch
        assert workorders.open_event(tx) is None
        tx.connection.execute(queue_table.delete())
        assert workorders.abandoned(tx) == []
    assert create(store, "e2") == order_of("e2")
    execute(store, "e2")
    with store.reading() as tx:
        assert workorders.find(tx, workorder_of("e1")) == patch
