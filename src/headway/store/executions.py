"""Live executions: claimed by owners, watched while they run, counted against the limits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, exists, func, select, update

from headway.domain.admission import Active
from headway.domain.execution import Execution, ExecutionState, StepRun
from headway.domain.routing import LOCAL
from headway.store import leases, live
from headway.store.execution_rows import to_execution
from headway.store.step_rows import steps_to_json
from headway.store.tables import execution, executions, manifest
from headway.store.transaction import (
    Transaction,
    among,
    among_found,
    draft_for,
    locked_in_order,
    word,
)

PENDING = execution.c.state == word(ExecutionState.PENDING)
IN_PROGRESS = execution.c.state == word(ExecutionState.IN_PROGRESS)
IS_LOCAL = execution.c.task_server == word(LOCAL)

Steps = Mapping[str, str]
NOTHING_LIVES = 2**63 - 1  # greater than any id
LONGEST_TIMEOUT = 100 * 366 * 24 * 3600  # seconds


def count_active(tx: Transaction, excluded: Collection[str], live_from: int = 0) -> Active:
    """Count what holds a slot; workflows in *excluded* hold one of their group's, none in all.

    Whoever knows that nothing older than *live_from* lives need not pass what lived before: ids are
    drawn under the dispatcher's lock, so what comes later has a greater one.
    """
    return Active.counted(tx.ask(live.counted(draft_for(tx)), {"live_from": live_from}), excluded)


def oldest_live(tx: Transaction) -> int | None:
    """The oldest live execution, if one lives; none comes under the dispatcher's lock."""
    [row] = tx.ask(live.oldest(draft_for(tx)))
    return None if row.oldest is None else int(row.oldest)


def claim_pending(
    tx: Transaction,
    owner: str,
    limit: int,
    workflows: Collection[str],
    first_steps: Steps | None = None,
    crashes: range | None = None,
) -> list[Execution]:
    """Start up to *limit* executions that wait for the own workers, in the name of *owner*.

    They are of known *workflows*; what was sent to another task server is not touched.
    *first_steps* names the step each workflow starts with, so that it is on record at once. With
    *crashes*, only those come that have taken so many workers along.
    """
    best_first = (
        select(execution.c.id)
        .where(PENDING, IS_LOCAL, among(tx, execution.c.workflow, workflows), live.may_live(tx))
        .order_by(execution.c.priority.desc(), execution.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    if crashes is not None:
        best_first = best_first.where(execution.c.crashes.between(crashes[0], crashes[-1]))
    return start(tx, owner, best_first, first_steps)


def has_pending(tx: Transaction, crashes: range) -> bool:
    """Whether something waits for the own workers that has taken so many of them along."""
    chosen = execution.c.crashes.between(crashes[0], crashes[-1])
    pending = select(execution.c.id).where(PENDING, IS_LOCAL, chosen, live.may_live(tx)).limit(1)
    return tx.connection.execute(pending).first() is not None


_SOMEBODY_WAITS = exists().where(PENDING, IS_LOCAL)
NOBODY_WAITS = ~_SOMEBODY_WAITS


def hold_to_claim(tx: Transaction, owner: str) -> bool:
    """Hold *owner*'s lease if there is anything to claim; False without the one or the other.

    A hint wakes every worker, and most of them find nothing: they need not look twice. What comes
    after this look comes with a hint of its own.
    """
    return leases.hold(tx, owner, only_if=_SOMEBODY_WAITS)


def hold_to_start(tx: Transaction, owner: str) -> bool:
    """Hold *owner*'s lease if nothing waits to be claimed, which would have to come first."""
    return leases.hold(tx, owner, only_if=NOBODY_WAITS)


def has_stale_pending(tx: Transaction, dispatched_before: datetime) -> bool:
    """Whether anything has waited for its worker since before *dispatched_before*."""
    stale = and_(PENDING, execution.c.dispatched_at < dispatched_before, live.may_live(tx))
    waiting = select(execution.c.id).where(stale)
    return tx.connection.execute(waiting.limit(1)).first() is not None


def claim_one(
    tx: Transaction, owner: str, execution_id: int, first_steps: Steps | None = None
) -> Execution | None:
    """Start this execution in the name of *owner*; None if it is not pending any more."""
    this_one = select(execution.c.id).where(execution.c.id == execution_id, PENDING)
    started = start(tx, owner, this_one.with_for_update(skip_locked=True), first_steps)
    return started[0] if started else None


def start(
    tx: Transaction, owner: str, chosen: Select[tuple[int]], first_steps: Steps | None
) -> list[Execution]:
    """Start the executions *chosen* in the name of *owner*; what has just been locked is left."""
    # Materialised, or the planner may run the LIMITed sub-select once per row.
    picked = chosen.cte("picked").prefix_with("MATERIALIZED", dialect="postgresql")
    statement = (
        update(execution)
        .where(among_found(tx, execution.c.id, select(picked.c.id)))
        .values(
            state=word(ExecutionState.IN_PROGRESS),
            owner=owner,
            started_at=tx.now,
            running_step=_first_step(first_steps),
            step_started_at=tx.now,
        )
        .returning(*execution.c)
    )
    started = [to_execution(row) for row in tx.connection.execute(statement)]
    return sorted(started, key=lambda one: (-one.priority, one.id))


def _first_step(first_steps: Steps | None) -> Any:
    """The step on record from the claim on: none after a crash, where the worker notes it itself.

    So the orphan sweep knows of each such run whether it had begun (decision 009).
    """
    if not first_steps:
        return None
    named = case(dict(first_steps), value=execution.c.workflow, else_=None)
    return case((execution.c.crashes == 0, named), else_=None)


def note_step(
    tx: Transaction, owner: str, execution_id: int, step: str, ended: Sequence[StepRun] = ()
) -> str | None:
    """Record the running step of an execution that is still *owner*'s, and those that have ended.

    Returns why cancellation was requested, ``""`` if it was not, None if it is not ours.
    """
    statement = (
        update(execution)
        .where(execution.c.id == execution_id, IN_PROGRESS, execution.c.owner == owner)
        .values(
            running_step=step,
            step_started_at=tx.now,
            steps=steps_to_json(ended) if ended else None,
        )
        .returning(execution.c.cancel_requested, execution.c.cancel_reason)
    )
    row = tx.connection.execute(statement).one_or_none()
    if row is None:
        return None
    return _asked_to_stop(row) or ""


@dataclass(frozen=True)
class Progress:
    """How far a run says it has come, from 0 to 1, and in which words."""

    fraction: float
    note: str | None = None


def note_progress(tx: Transaction, owner: str, reported: Mapping[int, Progress]) -> None:
    """Record how far executions have come, those that are still *owner*'s."""
    statement = (
        update(execution)
        .where(execution.c.id == bindparam("b_id"), IN_PROGRESS, execution.c.owner == owner)
        .values(progress=bindparam("b_progress"), progress_note=bindparam("b_note"))
    )
    rows = [
        {"b_id": key, "b_progress": reported[key].fraction, "b_note": reported[key].note}
        for key in sorted(reported)
    ]
    if rows:
        tx.connection.execute(statement, rows)


@dataclass(frozen=True)
class Owned:
    """A run as its owner asks about it; ``stop`` says why it was asked to stop, if it was."""

    execution_id: int
    owner: str
    stop: str | None


def owned_by_any(tx: Transaction, owners: Collection[str]) -> list[Owned]:
    """What is running in the names of *owners*, and whom of it somebody wants stopped."""
    statement = select(
        execution.c.id,
        execution.c.owner,
        execution.c.cancel_requested,
        execution.c.cancel_reason,
    ).where(IN_PROGRESS, among(tx, execution.c.owner, owners), live.may_live(tx))
    return [
        Owned(row.id, row.owner, _asked_to_stop(row)) for row in tx.connection.execute(statement)
    ]


def _asked_to_stop(row: Any) -> str | None:
    return (row.cancel_reason or "requested") if row.cancel_requested else None


def find(tx: Transaction, execution_id: int) -> Execution | None:
    """One execution, live or finished."""
    row = tx.connection.execute(
        select(executions).where(executions.c.id == execution_id)
    ).one_or_none()
    return to_execution(row) if row is not None else None


@dataclass(frozen=True)
class Running:
    """A run as the timeouts look at it."""

    execution_id: int
    manifest_id: int | None
    started_at: datetime
    timeout: timedelta | None
    cancel_requested: bool


def running(tx: Transaction) -> list[Running]:
    """Every execution in progress with its manifest's own timeout, ad-hoc ones included."""
    statement = (
        select(
            execution.c.id,
            execution.c.manifest_id,
            execution.c.started_at,
            execution.c.cancel_requested,
            manifest.c.timeout_seconds,
        )
        .select_from(execution.outerjoin(manifest, manifest.c.id == execution.c.manifest_id))
        .where(IN_PROGRESS, live.may_live(tx))
        .order_by(execution.c.id)
    )
    return [
        Running(
            row.id,
            row.manifest_id,
            row.started_at,
            _timeout(row.timeout_seconds),
            row.cancel_requested,
        )
        for row in tx.connection.execute(statement)
    ]


def timeout_of(tx: Transaction, execution_id: int) -> timedelta | None:
    """The timeout its manifest has of its own, if any."""
    own = select(manifest.c.timeout_seconds).where(
        manifest.c.id == execution.c.manifest_id, execution.c.id == execution_id
    )
    return _timeout(tx.connection.execute(own).scalar())


def _timeout(seconds: int | None) -> timedelta | None:
    """A stored timeout, but no longer than moments and other spans can be added to."""
    return None if seconds is None else timedelta(seconds=min(seconds, LONGEST_TIMEOUT))


def request_cancel(
    tx: Transaction, execution_ids: Sequence[int], reason: str, *, wait: bool = True
) -> list[int]:
    """Flag running executions for cancellation; returns those newly flagged.

    Without *wait*, what is being written at this moment is left out: it may be ending.
    """
    if not execution_ids:
        return []
    return _flag(tx, among(tx, execution.c.id, execution_ids), reason, wait=wait)


def ask_to_stop(tx: Transaction, chosen: ColumnElement[bool], reason: str) -> int:
    """Flag all *chosen* runs for cancellation; returns how many are to stop, now or before."""
    _flag(tx, chosen, reason, wait=True)
    asked = select(func.count()).where(chosen, IN_PROGRESS, execution.c.cancel_requested)
    return tx.connection.execute(asked).scalar_one()


def _flag(tx: Transaction, chosen: ColumnElement[bool], reason: str, *, wait: bool) -> list[int]:
    unflagged = and_(chosen, IN_PROGRESS, ~execution.c.cancel_requested)
    statement = (
        update(execution)
        .where(locked_in_order(tx, execution, unflagged, wait=wait))
        .values(cancel_requested=True, cancel_reason=reason)
        .returning(execution.c.id)
    )
    return sorted(tx.connection.execute(statement).scalars())
