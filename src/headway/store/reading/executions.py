"""Executions, live and finished, as lists and pages show them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, select

from headway.domain.execution import Execution, ExecutionState
from headway.domain.views import ExecutionDetail, ExecutionOverview
from headway.domain.work_queue import Source
from headway.store.execution_rows import to_execution
from headway.store.step_rows import steps_of
from headway.store.tables import execution, execution_history, executions
from headway.store.transaction import Transaction, among

OVERVIEW = [
    "id",
    "entry_id",
    "external_id",
    "group_name",
    "workflow",
    "source",
    "state",
    "attempt",
    "max_attempts",
    "crashes",
    "queued_at",
    "scheduled_for",
    "dispatched_at",
    "started_at",
    "finished_at",
    "owner",
    "task_server",
    "cancel_requested",
    "running_step",
    "progress",
    "progress_note",
    "failure_step",
    "failure_type",
    "failure_message",
]


def list_executions(
    tx: Transaction,
    *,
    external_id: str | None = None,
    states: Collection[ExecutionState] = (),
    limit: int | None = None,
) -> list[Execution]:
    """Executions, live and finished, newest last; with *limit* only the newest."""
    statement = select(executions).order_by(executions.c.id.desc())
    if external_id is not None:
        statement = statement.where(executions.c.external_id == external_id)
    if states:
        statement = statement.where(among(tx, executions.c.state, [str(one) for one in states]))
    if limit is not None:
        statement = statement.limit(limit)
    newest_first = [to_execution(row) for row in tx.connection.execute(statement)]
    return newest_first[::-1]


def overviews(tx: Transaction, ids: Sequence[int]) -> list[ExecutionOverview]:
    """These executions in this order, live or finished."""
    found: dict[int, ExecutionOverview] = {}
    # What ends between the two statements is found in the second.
    for table in (execution, execution_history):
        chosen = among(tx, table.c.id, ids)
        found |= {one.id: one for one in _read(tx, table, chosen)}
    return [found[one] for one in ids if one in found]


def live(tx: Transaction, *chosen: ColumnElement[bool]) -> list[ExecutionOverview]:
    """The live executions that are *chosen*, oldest first."""
    return sorted(_read(tx, execution, *chosen), key=lambda one: one.id)


def _read(
    tx: Transaction, table: Table, *chosen: ColumnElement[bool]
) -> Iterable[ExecutionOverview]:
    rows = tx.connection.execute(select(*overview_columns(table)).where(*chosen))
    return [to_overview(row) for row in rows]


def overview_columns(table: Table) -> list[ColumnElement[Any]]:
    """What an overview is made of, as far as *table* has it."""
    return [table.c[name] for name in OVERVIEW if name in table.c]


def to_overview(row: Row[Any]) -> ExecutionOverview:
    """A row of the live table or the history as lists show it."""
    values = dict(row._mapping)
    step, kind, message = (values.pop(f"failure_{what}", None) for what in _FAILURE)
    values["finished_at"] = values.get("finished_at")
    values["state"], values["source"] = ExecutionState(row.state), Source(row.source)
    # Rows written by earlier versions keep the last step of an execution that has ended.
    values["running_step"] = None if values["state"].terminal else row.running_step
    values["cancel_requested"] = bool(row.cancel_requested)
    line = (message or "").partition("\n")[0]
    return ExecutionOverview(**values, failure=f"{step}: {kind}: {line}" if kind else None)


_FAILURE = ("step", "type", "message")


def find(tx: Transaction, execution_id: int) -> Row[Any] | None:
    """The whole row of one execution, live or finished."""
    for table in (execution, execution_history):
        row = tx.connection.execute(select(table).where(table.c.id == execution_id)).one_or_none()
        if row is not None:
            return row
    return None


def detail(tx: Transaction, execution_id: int) -> ExecutionDetail | None:
    """Everything about an execution, with the other attempts of its entry."""
    row = find(tx, execution_id)
    if row is None:
        return None
    return ExecutionDetail(
        execution=to_execution(row),
        queued_at=row.queued_at,
        scheduled_at=row.scheduled_at,
        input_type=row.input_type,
        cancel_reason=row.cancel_reason,
        steps=steps_of(row),
        attempts=tuple(attempts(tx, row.entry_id)),
    )


def attempts(tx: Transaction, entry_id: int, most: int = 100) -> list[ExecutionOverview]:
    """The newest attempts of an entry, oldest first."""
    found: dict[int, ExecutionOverview] = {}
    for table in (execution, execution_history):
        columns = select(*overview_columns(table)).where(table.c.entry_id == entry_id)
        newest = columns.order_by(table.c.id.desc()).limit(most)
        found |= {row.id: to_overview(row) for row in tx.connection.execute(newest)}
    return [found[key] for key in sorted(found)]
