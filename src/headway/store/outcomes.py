"""How attempts end: the live row is deleted, what it returned becomes history, and everything
that follows from it (last success, settled occurrences, wake-ups) is in the same transaction.

The guarded DELETE is the fence: the loser of a race gets no row back and does nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, insert, select, update

from headway.domain.execution import (
    Execution,
    ExecutionState,
    Failure,
    FailureCode,
    Outcome,
    check_transition,
)
from headway.domain.text import printable
from headway.domain.timing import settled_by_success
from headway.domain.work_queue import Source
from headway.errors import HeadwayError
from headway.store.activation import release_held
from headway.store.edges import consume
from headway.store.executions import IN_PROGRESS, PENDING, to_execution
from headway.store.manifest_rows import schedule_of, time_of
from headway.store.tables import execution, execution_history, manifest, manifest_state
from headway.store.transaction import Transaction, among, locked_in_order
from headway.store.wakes import Scope, leave_wakes
from headway.store.work_queue import put_off, requeue

REASON_LIMIT = 1000

# What has dealt with the parent successes it saw.
CONSUMING = frozenset({ExecutionState.COMPLETED, ExecutionState.CANCELLED})

# A success of these settles the occurrence it stood for.
SCHEDULED = frozenset({Source.SCHEDULE, Source.REQUEUE})


def finish(tx: Transaction, owner: str, outcomes: Mapping[int, Outcome]) -> list[Execution]:
    """Record how *owner*'s executions ended; returns those that were still *owner*'s."""
    mine = and_(among(tx, execution.c.id, outcomes), IN_PROGRESS, execution.c.owner == owner)
    return _end(tx, mine, lambda row: outcomes[row.id])


def hand_back(tx: Transaction, owner: str, execution_ids: Iterable[int]) -> list[Execution]:
    """Give *owner*'s executions up unfinished; their entries are queued again, uncharged."""
    mine = and_(among(tx, execution.c.id, execution_ids), IN_PROGRESS, execution.c.owner == owner)
    return _end(tx, mine, lambda row: Outcome(ExecutionState.HANDED_BACK))


def take_back(
    tx: Transaction, execution_ids: Iterable[int], max_dispatch_attempts: int, reason: str
) -> list[Execution]:
    """Queue the entries of pending executions again, a little later: their server refused them.

    An execution whose entry was refused *max_dispatch_attempts* times fails with the *reason*.
    """
    failure = Failure("DispatchJobs", FailureCode.REFUSED, printable(reason, REASON_LIMIT))

    def outcome_of(row: Any) -> Outcome:
        if row.dispatch_attempts + 1 < max_dispatch_attempts:
            return Outcome(ExecutionState.HANDED_BACK)
        return Outcome(ExecutionState.FAILED, failure)

    pending = and_(among(tx, execution.c.id, execution_ids), PENDING)
    taken = _end(tx, pending, outcome_of)
    put_off(tx, [one.entry_id for one in taken])
    return taken


def fail_stale_pending(tx: Transaction, dispatched_before: datetime) -> list[Execution]:
    """Fail what nobody picked up since *dispatched_before*."""
    failure = Failure(
        "ReapStalePending",
        FailureCode.STALE_PENDING,
        "no worker picked this up within stale_pending_timeout",
    )
    stale = and_(PENDING, execution.c.dispatched_at < dispatched_before)
    return _end(tx, stale, lambda row: Outcome(ExecutionState.FAILED, failure), wait=False)


def fail_stale_in_progress(tx: Transaction, execution_ids: Iterable[int]) -> list[Execution]:
    """Fail runs that neither ended nor answered a cancellation in time."""
    failure = Failure(
        "ReapStaleInProgress",
        FailureCode.STALE_IN_PROGRESS,
        "did not end within stale_in_progress_timeout",
    )
    stale = and_(among(tx, execution.c.id, execution_ids), IN_PROGRESS)
    return _end(tx, stale, lambda row: Outcome(ExecutionState.FAILED, failure), wait=False)


def _end(
    tx: Transaction,
    chosen: ColumnElement[bool],
    outcome_of: Callable[[Any], Outcome],
    *,
    wait: bool = True,
) -> list[Execution]:
    # The reapers do not wait: the manager may hold the state whoever is finishing needs next.
    locked = locked_in_order(execution, chosen, wait=wait)
    statement = delete(execution).where(locked).returning(*execution.c)
    rows = sorted(tx.connection.execute(statement).all(), key=lambda row: int(row.id))
    if not rows:
        return []
    ended = _write_history(tx, [(row, outcome_of(row)) for row in rows])
    _settle(tx, [(one.manifest_id, one) for one in ended if one.manifest_id is not None])
    consume(tx, [row.parents_seen for row in rows if outcome_of(row).state in CONSUMING])
    requeue(tx, [row for row in rows if outcome_of(row).state is ExecutionState.HANDED_BACK])
    release_held(tx, _freed(ended))
    return ended


def _freed(ended: Sequence[Execution]) -> set[int]:
    """The manifests that are not running any more; what was handed back runs again."""
    return {
        one.manifest_id
        for one in ended
        if one.manifest_id is not None and one.state is not ExecutionState.HANDED_BACK
    }


def _write_history(tx: Transaction, rows: Sequence[tuple[Any, Outcome]]) -> list[Execution]:
    written = [_history_row(tx, row, outcome) for row, outcome in rows]
    statement = insert(execution_history).returning(
        *execution_history.c, sort_by_parameter_order=True
    )
    return [to_execution(row) for row in tx.connection.execute(statement, written)]


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
    }


def _settle(tx: Transaction, ended: Sequence[tuple[int, Execution]]) -> None:
    """Write what the ended runs mean for their manifests, and ask the manager to look again."""
    successes = {key: one for key, one in ended if one.state is ExecutionState.COMPLETED}
    cancelled = {key: one for key, one in ended if one.state is ExecutionState.CANCELLED}
    if successes or cancelled:
        states = _lock_states(tx, {*successes, *cancelled})
        _record_successes(tx, successes, states)
        _consume_occurrences(tx, cancelled, states)
    wakes = [(key, Scope.SELF) for key, _ in ended]
    leave_wakes(tx, wakes + [(key, Scope.CHILDREN) for key in successes])


def _lock_states(tx: Transaction, manifest_ids: Iterable[int]) -> dict[int, Any]:
    statement = (
        select(
            manifest_state.c.manifest_id,
            manifest_state.c.settled_until,
            manifest_state.c.failures_after,
            manifest,
        )
        .join(manifest)
        .where(among(tx, manifest_state.c.manifest_id, manifest_ids))
        .order_by(manifest_state.c.manifest_id)
        .with_for_update(of=manifest_state, key_share=True)
    )
    return {row.manifest_id: row for row in tx.connection.execute(statement)}


def _record_successes(
    tx: Transaction, successes: Mapping[int, Execution], states: Mapping[int, Any]
) -> None:
    rows = [
        {
            "b_manifest_id": key,
            "b_settled_until": _settled_by_success(tx, one, states[key]),
            "b_failures_after": max(one.id, states[key].failures_after),
        }
        for key, one in successes.items()
        if key in states
    ]
    if not rows:
        return
    tx.connection.execute(
        update(manifest_state)
        .where(manifest_state.c.manifest_id == bindparam("b_manifest_id"))
        .values(
            settled_until=bindparam("b_settled_until"),
            failures_after=bindparam("b_failures_after"),
            last_success_at=tx.now,
            success_seq=manifest_state.c.success_seq + 1,
        ),
        rows,
    )
    scheduled = [key for key, one in successes.items() if one.source in SCHEDULED]
    _disable_done(tx, [key for key in scheduled if states[key].schedule_kind == "once"])


def _settled_by_success(tx: Transaction, one: Execution, state: Any) -> datetime | None:
    """A scheduled success settles all that came due while it ran; a manual one only intervals."""
    settled: datetime | None = state.settled_until
    scheduled_for = one.scheduled_for if one.source in SCHEDULED else None
    try:
        timing = time_of(state).timing(schedule_of(state))
    except HeadwayError:
        return settled  # a row somebody edited: the manager says what is wrong with it
    return settled_by_success(timing, state.external_id, settled, scheduled_for, tx.now)


def _consume_occurrences(
    tx: Transaction, cancelled: Mapping[int, Execution], states: Mapping[int, Any]
) -> None:
    """A cancelled run is not repeated: its own occurrence counts as dealt with."""
    rows = [
        {
            "b_manifest_id": key,
            "b_settled_until": max(
                one.scheduled_for, states[key].settled_until or one.scheduled_for
            ),
        }
        for key, one in cancelled.items()
        if key in states and one.scheduled_for is not None
    ]
    if rows:
        tx.connection.execute(
            update(manifest_state)
            .where(manifest_state.c.manifest_id == bindparam("b_manifest_id"))
            .values(settled_until=bindparam("b_settled_until")),
            rows,
        )


def _disable_done(tx: Transaction, manifest_ids: Sequence[int]) -> None:
    """A once-manifest whose occurrence succeeded is switched off and stays for the record."""
    if manifest_ids:
        done = among(tx, manifest.c.id, manifest_ids)
        tx.connection.execute(update(manifest).where(done).values(enabled=False))
