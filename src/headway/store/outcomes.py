"""How attempts end: the live row is deleted, what it returned becomes history, and everything
that follows from it (last success, settled occurrences, wake-ups) is in the same transaction.

The guarded DELETE is the fence: the loser of a race gets no row back and does nothing.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, or_, select

from headway.domain.attempts import Next, what_is_next
from headway.domain.dead_letter import crash_reason, hand_back_reason
from headway.domain.execution import (
    Ended,
    Execution,
    ExecutionState,
    Failure,
    FailureCode,
    Outcome,
    crashed_too_often,
)
from headway.domain.refusals import is_hopeless, pause_after
from headway.domain.retry import RetryPolicy
from headway.domain.text import printable
from headway.store import dead_letters, pause_states
from headway.store.activation import release_held
from headway.store.attempts import Failed, queue_next
from headway.store.completing import complete
from headway.store.dead_letters import NewDeadLetter
from headway.store.delays import put_off
from headway.store.edges import consume
from headway.store.execution_rows import to_execution
from headway.store.executions import IN_PROGRESS, IS_LOCAL, PENDING
from headway.store.hand_backs import Charge, charged
from headway.store.history_rows import write_history
from headway.store.live import may_live
from headway.store.settling import settle_ended
from headway.store.tables import execution, execution_history, outbox, server
from headway.store.transaction import Transaction, among, locked_in_order
from headway.store.work_queue import requeue

REASON_LIMIT = 1000
TIMEOUT = "timeout"

# What has dealt with the parent successes it saw.
CONSUMING = frozenset({ExecutionState.COMPLETED, ExecutionState.CANCELLED})

# What an entry waits by between its own attempts, unless its manifest or the settings say more.
BACKOFF = RetryPolicy()


def finish(
    tx: Transaction,
    owner: str,
    outcomes: Mapping[int, Outcome],
    backoff: RetryPolicy = BACKOFF,
    *,
    in_brief: bool = False,
    charge: Charge | None = None,
) -> list[Ended]:
    """Record how *owner*'s executions ended; returns those that were still *owner*'s, *in_brief* of
    one that completed and has no manifest nothing but that.

    With a *charge*, a run that is handed back too often counts as one that lost its worker."""
    completed = _complete(tx, owner, outcomes, in_brief) if tx.on_postgresql else []
    done = {one.id for one in completed}
    others = {key: outcomes[key] for key in outcomes if key not in done}
    if not others:
        return completed
    mine = and_(among(tx, execution.c.id, others), IN_PROGRESS, execution.c.owner == owner)
    ended = _end_charged(tx, mine, lambda row: others[row.id], backoff, charge)
    return sorted(completed + [one.ended(tx.now) for one in ended], key=lambda one: one.id)


def _complete(
    tx: Transaction, owner: str, outcomes: Mapping[int, Outcome], in_brief: bool
) -> list[Ended]:
    """End those that returned and leave nothing behind for a person."""
    returned = {
        key: one
        for key, one in outcomes.items()
        if one.state is ExecutionState.COMPLETED and not one.hand_over
    }
    if not returned:
        return []
    if len(returned) < len(outcomes):
        _lock(tx, outcomes)
    completed = complete(tx, owner, returned, in_brief=in_brief)
    of_manifests = [(one.ended.manifest_id, one) for one in completed if one.ended.manifest_id]
    if of_manifests:
        settle_ended(tx, [(key, one.ended) for key, one in of_manifests])
        consume(tx, [one.parents_seen for _, one in of_manifests])
        release_held(tx, {key for key, _ in of_manifests})
    return [one.ended for one in completed]


def _lock(tx: Transaction, execution_ids: Iterable[int]) -> None:
    """In one go, in the order of their ids, because two statements will touch them."""
    chosen = select(execution.c.id).where(among(tx, execution.c.id, execution_ids))
    tx.connection.execute(chosen.order_by(execution.c.id).with_for_update())


def hand_back(
    tx: Transaction, owner: str, execution_ids: Iterable[int], charge: Charge | None = None
) -> list[Execution]:
    """Give *owner*'s executions up unfinished; their entries are queued again, uncharged.

    With a *charge*, a run that is handed back too often counts as one that lost its worker.
    """
    mine = and_(among(tx, execution.c.id, execution_ids), IN_PROGRESS, execution.c.owner == owner)
    return _end_charged(tx, mine, lambda row: Outcome(ExecutionState.HANDED_BACK), BACKOFF, charge)


def take_back(
    tx: Transaction,
    execution_ids: Iterable[int],
    max_dispatch_attempts: int,
    reason: str,
    backoff: RetryPolicy = BACKOFF,
    patience: timedelta = timedelta(),
) -> list[Execution]:
    """Queue the entries of pending executions again, a little later: their server refused them.

    The *reason* is on record with each execution. One whose entry was refused
    *max_dispatch_attempts* times, and that for as long as the *patience*, fails with it.
    """
    failure = _refusal(reason)

    refused: dict[int, list[int]] = {}

    def outcome_of(row: Any) -> Outcome:
        refusals = row.dispatch_attempts + 1
        if is_hopeless(refusals, max_dispatch_attempts, patience):
            return Outcome(ExecutionState.FAILED, failure)
        refused.setdefault(refusals, []).append(row.entry_id)
        return Outcome(ExecutionState.HANDED_BACK, failure)

    pending = and_(among(tx, execution.c.id, execution_ids), PENDING)
    taken = _end(tx, pending, outcome_of, backoff)
    for refusals, entry_ids in refused.items():
        put_off(tx, entry_ids, pause_after(refusals))
    return taken


def recall(tx: Transaction, chosen: ColumnElement[bool], reason: str) -> list[Execution]:
    """Queue the entries of *chosen* again that are pending; the *reason* is on record with them."""
    outcome = Outcome(ExecutionState.HANDED_BACK, _refusal(reason))
    return _end(tx, and_(PENDING, chosen), lambda row: outcome)


def _refusal(reason: str) -> Failure:
    return Failure("DispatchJobs", FailureCode.REFUSED, printable(reason, REASON_LIMIT))


def cancel_pending(tx: Transaction, chosen: ColumnElement[bool], reason: str) -> list[Execution]:
    """Cancel those of *chosen* that no worker has started yet."""

    def cancelled(row: Any) -> Outcome:
        failure = Failure(row.workflow, "JobCancelled", f"cancelled before it started: {reason}")
        return Outcome(ExecutionState.CANCELLED, failure)

    return _end(tx, and_(PENDING, chosen), cancelled)


def fail_stale_pending(
    tx: Transaction,
    dispatched_before: datetime,
    still_served: Collection[str] = (),
    delivered: Collection[str] = (),
    backoff: RetryPolicy = BACKOFF,
) -> list[Execution]:
    """Fail what nobody picked up since *dispatched_before*, but nothing of *still_served*.

    Those are workflows whose own workers are at work: what waits for them is not lost. Nor is
    what the outbox has still to tell of, or tells of again for a living executor of *delivered*
    workflows. Of what else was sent to other task servers nothing is known but its age.
    """
    failure = Failure(
        "ReapStalePending",
        FailureCode.STALE_PENDING,
        "no worker picked this up within stale_pending_timeout",
    )
    served = and_(IS_LOCAL, among(tx, execution.c.workflow, still_served))
    told = exists().where(
        outbox.c.execution_id == execution.c.id,
        or_(outbox.c.published == 0, among(tx, execution.c.workflow, delivered)),
    )
    stale = and_(PENDING, execution.c.dispatched_at < dispatched_before, ~served, ~told)
    return _end(tx, stale, lambda row: Outcome(ExecutionState.FAILED, failure), backoff, wait=False)


def fail_stale_in_progress(
    tx: Transaction, execution_ids: Iterable[int], backoff: RetryPolicy = BACKOFF
) -> list[Execution]:
    """Fail runs that neither ended nor answered a cancellation in time."""
    failure = Failure(
        "ReapStaleInProgress",
        FailureCode.STALE_IN_PROGRESS,
        "did not end within stale_in_progress_timeout",
    )
    stale = and_(among(tx, execution.c.id, execution_ids), IN_PROGRESS)
    return _end(tx, stale, lambda row: Outcome(ExecutionState.FAILED, failure), backoff, wait=False)


def end_orphans(
    tx: Transaction, max_crashes: int, backoff: RetryPolicy = BACKOFF
) -> tuple[list[Execution], list[Execution]]:
    """End every run whose owner is buried; their entries are queued again, and counted as crashes
    unless they are known not to have begun.

    One that has crashed *max_crashes* times is not queued again, and its manifest is dead-lettered.
    Returns all that were ended, and the last run of each manifest dead-lettered. A server's id
    never comes back, so what is an orphan stays one, however late this statement is.
    """
    orphaned = and_(IN_PROGRESS, ~exists().where(server.c.id == execution.c.owner), may_live(tx))
    ended = _end(tx, orphaned, _orphaned, backoff, max_crashes=max_crashes, wait=False)
    return ended, _dead_letter(tx, ended, max_crashes, crash_reason)


def _dead_letter(
    tx: Transaction, ended: Sequence[Execution], max_crashes: int, reason: Callable[[int], str]
) -> list[Execution]:
    """Dead-letter the manifests of runs that had no crash left; returns the last run of each."""
    hopeless = {
        one.manifest_id: one
        for one in ended
        if one.lost and one.manifest_id and crashed_too_often(one.crashes, max_crashes)
    }
    letters = [
        NewDeadLetter(key, reason(one.crashes + 1), one.crashes + 1)
        for key, one in hopeless.items()
    ]
    return [hopeless[key] for key in dead_letters.create(tx, letters)]


def _orphaned(row: Any) -> Outcome:
    """What somebody wanted stopped is over; all else was interrupted and is done again.

    A run that is known not to have begun did not take its worker along, and is charged nothing.
    That is known only after a first crash: see ``executions.start``.
    """
    step = row.running_step or row.workflow
    if not row.cancel_requested and row.crashes and row.running_step is None:
        return Outcome(ExecutionState.HANDED_BACK)
    if not row.cancel_requested:
        failure = Failure(step, FailureCode.WORKER_LOST, f"its worker {row.owner} is gone")
    elif row.cancel_reason == TIMEOUT:
        told = "ran longer than its timeout, and its worker is gone"
        failure = Failure(step, FailureCode.JOB_TIMEOUT, told)
    else:
        failure = Failure(step, "JobCancelled", "was to be stopped, and its worker is gone")
    return Outcome(ExecutionState.FAILED, failure)


def written_by(tx: Transaction, owner: str, outcomes: Mapping[int, Outcome]) -> list[Execution]:
    """Those of *outcomes* that are on record just so in the name of *owner*.

    A writer whose connection was lost while it committed does not know: it has to look.
    """
    history = execution_history.c
    mine = select(execution_history).where(among(tx, history.id, outcomes), history.owner == owner)
    found = [to_execution(row) for row in tx.connection.execute(mine.order_by(history.id))]
    return [one for one in found if _says(one, outcomes[one.id])]


def _says(one: Execution, outcome: Outcome) -> bool:
    """Others end runs too, in their owner's name, but then the failure is another."""
    kinds = [failure.type if failure else None for failure in (one.failure, outcome.failure)]
    return one.state in (outcome.state, ExecutionState.CANCELLED) and kinds[0] == kinds[1]


def _end_charged(
    tx: Transaction,
    chosen: ColumnElement[bool],
    outcome_of: Callable[[Any], Outcome],
    backoff: RetryPolicy,
    charge: Charge | None,
) -> list[Execution]:
    if charge is None:
        return _end(tx, chosen, outcome_of, backoff)
    crashes = charge.max_crashes
    ended = _end(tx, chosen, outcome_of, backoff, max_crashes=crashes, charges=True)
    charge.dead_lettered += _dead_letter(tx, ended, crashes, hand_back_reason)
    return ended


def _end(
    tx: Transaction,
    chosen: ColumnElement[bool],
    outcome_of: Callable[[Any], Outcome],
    backoff: RetryPolicy = BACKOFF,
    *,
    max_crashes: int | None = None,
    charges: bool = False,
    wait: bool = True,
) -> list[Execution]:
    # The reapers do not wait: the manager may hold the state whoever is finishing needs next.
    locked = locked_in_order(tx, execution, chosen, wait=wait)
    statement = delete(execution).where(locked).returning(*execution.c)
    rows = sorted(tx.connection.execute(statement).all(), key=lambda row: int(row.id))
    if not rows:
        return []
    outcomes = [(row, _heeding_a_cancellation(row, outcome_of(row))) for row in rows]
    if charges:
        outcomes = charged(tx, outcomes)
    ended = write_history(tx, outcomes)
    how = (outcome for _, outcome in outcomes)
    pause_states.leave_after_runs(tx, zip(ended, how, strict=True))
    settle_ended(tx, [(one.manifest_id, one) for one in ended if one.manifest_id is not None])
    consume(tx, [row.parents_seen for row, outcome in outcomes if outcome.state in CONSUMING])
    _go_on(tx, outcomes, backoff, max_crashes)
    return ended


def _go_on(
    tx: Transaction,
    outcomes: Sequence[tuple[Any, Outcome]],
    backoff: RetryPolicy,
    max_crashes: int | None,
) -> None:
    """Queue again the entries that are not over, and what waited for the manifests that are free
    now: one that waits for a later attempt leaves its manifest free meanwhile."""
    then = {
        row.id: what_is_next(outcome, row.attempt, row.max_attempts, row.crashes, max_crashes)
        for row, outcome in outcomes
    }
    at_once = [row for row, _ in outcomes if then[row.id] in (Next.AT_ONCE, Next.AFTER_CRASH)]
    requeue(tx, at_once, {row.id for row in at_once if then[row.id] is Next.AFTER_CRASH})
    later = [
        Failed(row, one.failure) for row, one in outcomes if then[row.id] is Next.AFTER_BACKOFF
    ]
    queue_next(tx, later, backoff)
    free = {row.manifest_id for row, _ in outcomes} - {row.manifest_id for row in at_once} - {None}
    release_held(tx, free)


def _heeding_a_cancellation(row: Any, outcome: Outcome) -> Outcome:
    """What a person wanted stopped and did not complete is neither repeated nor a failure."""
    stopped = outcome.state in (ExecutionState.FAILED, ExecutionState.HANDED_BACK)
    if not stopped or not row.cancel_requested or row.cancel_reason == TIMEOUT:
        return outcome
    step = row.running_step or row.workflow
    failure = outcome.failure or Failure(step, "JobCancelled", "was to be stopped, and has been")
    return outcome._replace(state=ExecutionState.CANCELLED, failure=failure)
