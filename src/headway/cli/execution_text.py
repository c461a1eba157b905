"""An execution as people read it."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.console import Console

from headway.cli.output import Column, show_fields, show_table
from headway.domain.execution import ExecutionState
from headway.domain.text import TRACEBACK_LIMIT, for_terminal
from headway.domain.views import ExecutionDetail, ExecutionOverview, StepRun

ATTEMPTS = (
    Column[ExecutionOverview]("attempt", lambda one: one.attempt),
    Column[ExecutionOverview]("execution", lambda one: one.id),
    Column[ExecutionOverview]("state", lambda one: one.state),
    Column[ExecutionOverview]("started", lambda one: one.started_at),
    Column[ExecutionOverview]("failure", lambda one: one.failure, long=True),
)


def show_execution(output: Console, found: ExecutionDetail, input: str, now: datetime) -> None:
    """Print everything about an execution, with moments as seen from *now*.

    >>> show_execution(console(), history.executions.detail(17), "3", now)  # doctest: +SKIP
    """
    show_fields(output, _fields(found, input), now=now)
    if found.steps:
        columns = _steps(found.execution.state)
        show_table(output, columns, found.steps, now=now, title="steps")
    if len(found.attempts) > 1:
        title = f"attempts of entry {found.execution.entry_id}"
        show_table(output, ATTEMPTS, found.attempts, now=now, title=title)
    failure = found.execution.failure
    if failure is not None and failure.traceback:
        output.print()
        output.print(for_terminal(failure.traceback, TRACEBACK_LIMIT).rstrip(), soft_wrap=True)


def _steps(state: ExecutionState) -> Sequence[Column[StepRun]]:
    """The columns; a step that was begun and has not ended tells how the execution stands."""
    return (
        Column("step", lambda one: one.name, long=True),
        Column("started", lambda one: one.started_at),
        Column("took", lambda one: state if one.seconds is None else _span(one.seconds)),
    )


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _fields(found: ExecutionDetail, input: str) -> Iterator[tuple[str, object]]:
    one = found.execution
    yield "execution", one.id
    yield "state", one.state
    yield "manifest", one.external_id
    yield "workflow", one.workflow
    yield "group", one.group_name
    yield "entry", f"{one.entry_id}, by {one.source}"
    yield "attempt", f"{one.attempt} of {one.max_attempts}" if one.max_attempts > 1 else None
    yield "for", one.scheduled_for
    yield "queued", found.queued_at
    yield "dispatched", one.dispatched_at
    yield "started", one.started_at
    yield "finished", one.finished_at
    if one.started_at is not None and one.finished_at is not None:
        yield "took", one.finished_at - one.started_at
    yield "worker", one.owner
    yield "task server", one.task_server
    yield "progress", _progress(one.progress, one.progress_note)
    if one.cancel_requested:
        yield "cancelled", found.cancel_reason or "asked for"
    yield "input", input
    yield "output", one.output
    if one.failure is not None:
        yield "failure", one.failure.summary


def _progress(done: float | None, note: str | None) -> str:
    return " ".join(filter(None, (None if done is None else f"{done:.0%}", note)))
