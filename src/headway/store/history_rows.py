"""The history: written once, when an attempt ends, and never again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headway.domain.execution import (
    Execution,
    ExecutionState,
    Failure,
    Outcome,
    check_transition,
)
from headway.store.execution_ids import reserve_unused
from headway.store.execution_rows import ended_as, to_execution
from headway.store.rows import insert_rows
from headway.store.step_rows import steps_of, steps_to_json
from headway.store.tables import execution_history
from headway.store.transaction import Transaction, insert_or_ignore


def write_history(tx: Transaction, rows: Sequence[tuple[Any, Outcome]]) -> list[Execution]:
    """Write how live rows that were just deleted have ended; returns them as they are now."""
    written = {row.id: _history_row(tx, row, outcome) for row, outcome in rows}
    kept = _insert(tx, list(written.values()))
    taken = [key for key in written if key not in kept]
    # The id of a row that somebody edited may be in the history already: it must hold up no other.
    instead = dict(zip(taken, reserve_unused(tx, len(taken)) if taken else (), strict=True))
    for key, unused in instead.items():
        _insert(tx, [written[key] | {"id": unused}])
    return [
        ended_as(to_execution(row), outcome, instead.get(row.id, row.id), tx.now)
        for row, outcome in rows
    ]


def _insert(tx: Transaction, written: Sequence[dict[str, Any]]) -> set[int]:
    """Write *written* to the history; returns the ids of those that were not there already."""
    statement = insert_or_ignore(tx, execution_history).returning(execution_history.c.id)
    return set(insert_rows(tx, statement, execution_history, written).scalars())


def _retry_at(tx: Transaction, failure: Failure | None) -> datetime | None:
    wished = None if failure is None else failure.retry_in
    return None if wished is None else tx.now + wished


def _history_row(tx: Transaction, row: Any, outcome: Outcome) -> dict[str, Any]:
    check_transition(ExecutionState(row.state), outcome.state)
    failure = outcome.failure
    values = dict(row._mapping)
    values.pop("single_flight")
    return values | {
        "state": outcome.state.value,
        "finished_at": tx.now,
        "failure_step": failure.step if failure else None,
        "failure_type": str(failure.type) if failure else None,
        "failure_message": failure.message if failure else None,
        "failure_traceback": failure.traceback if failure else None,
        "output": outcome.output,
        "final": failure is not None and failure.final,
        "retry_at": _retry_at(tx, failure),
        **_steps(row, outcome),
    }


def _steps(row: Any, outcome: Outcome) -> dict[str, Any]:
    """The steps that ran, and no running step."""
    steps = outcome.steps
    if steps is None and outcome.state is not ExecutionState.COMPLETED and row.running_step:
        steps = steps_of(row)  # ended by another process, which knows only what was noted
    if steps is None:
        return {}  # a completed run always reports its steps; without them, as in completing.py
    return {"steps": steps_to_json(steps), "running_step": None, "step_started_at": None}
