"""Rows of executions as the domain's values."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row

from headway.domain.execution import Execution, ExecutionState, Failure, Outcome
from headway.domain.routing import LOCAL


def to_execution(row: Row[Any]) -> Execution:
    """A row of the live table, the history or the view over both, as the domain's value."""
    values = row._mapping
    failed = values.get("failure_type")
    state = ExecutionState(row.state)
    # Rows written by earlier versions keep the last step of an execution that has ended.
    ended = state.terminal
    return Execution(
        id=row.id,
        entry_id=row.entry_id,
        manifest_id=row.manifest_id,
        external_id=row.external_id,
        group_name=row.group_name,
        workflow=row.workflow,
        input=row.input,
        source=row.source,
        priority=row.priority,
        attempt=row.attempt,
        crashes=row.crashes,
        state=state,
        scheduled_for=row.scheduled_for,
        dispatched_at=row.dispatched_at,
        started_at=row.started_at,
        finished_at=values.get("finished_at"),
        owner=row.owner,
        cancel_requested=bool(row.cancel_requested),
        running_step=None if ended else row.running_step,
        step_started_at=None if ended else row.step_started_at,
        progress=row.progress,
        progress_note=row.progress_note,
        failure=_failure(values) if failed else None,
        output=values.get("output"),
        task_server=row.task_server,
        parents_seen=row.parents_seen,
        max_attempts=row.max_attempts,
        queued_at=row.queued_at,
    )


def just_started(row: Any, now: datetime) -> Execution:
    """An execution that was created in progress a moment ago, of what its INSERT returned: the
    columns ``RETURNED`` and ``STARTED`` in their order (``folding``)."""
    key, entry_id, manifest_id, _, _, owner, external_id, group_name, workflow, *rest = row
    input_text, source, priority, attempt, max_attempts, queued_at, *rest = rest
    scheduled_for, seen, step = rest
    return Execution(
        key,
        entry_id,
        manifest_id,
        external_id,
        group_name,
        workflow,
        input_text,
        source,
        priority,
        attempt,
        0,
        ExecutionState.IN_PROGRESS,
        scheduled_for,
        now,
        now,
        None,
        owner,
        False,
        step,
        now,
        None,
        None,
        None,
        None,
        LOCAL,
        seen,
        max_attempts,
        queued_at,
    )


def ended_as(live: Execution, outcome: Outcome, key: int, finished_at: datetime) -> Execution:
    """What *live* is in the history after *outcome*, under the id *key*."""
    return live._replace(
        id=key,
        state=outcome.state,
        finished_at=finished_at,
        running_step=None,
        step_started_at=None,
        failure=outcome.failure,
        output=outcome.output,
    )


def _failure(values: Any) -> Failure:
    return Failure(
        values["failure_step"],
        values["failure_type"],
        values["failure_message"],
        values["failure_traceback"] or "",
    )
