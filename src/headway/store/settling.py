"""What the end of a run means for its manifest: last success, settled occurrences, wake-ups."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Select, Update, bindparam, select, update

from headway.domain.execution import Ended, Execution, ExecutionState
from headway.domain.timing import settled_by_success
from headway.domain.work_queue import Source
from headway.errors import HeadwayError
from headway.store.manifest_rows import TIMED, timing_of
from headway.store.overlapping import later
from headway.store.rows import unnest_of
from headway.store.tables import manifest, manifest_state
from headway.store.transaction import Draft, Transaction, among, among_given, draft_for
from headway.store.wakes import Scope, leave_wakes, settle

# A success of these settles the occurrence it stood for.
SCHEDULED = frozenset({Source.SCHEDULE, Source.REQUEUE})
ASKED_FOR = frozenset({Source.TRIGGER, Source.RERUN})

# What is written of a manifest's successes.
COUNTED = ("manifest_id", "settled_until", "failures_after", "success_seq")


Ends = Sequence[tuple[int, Execution | Ended]]


def settle_ended(tx: Transaction, ended: Ends) -> None:
    """Write what the ended runs mean for their manifests, and ask the manager to look again."""
    successes = [(key, one) for key, one in ended if one.state is ExecutionState.COMPLETED]
    cancelled = [(key, one) for key, one in ended if one.state is ExecutionState.CANCELLED]
    states: Mapping[int, Any] = {}
    if successes or cancelled:
        states = lock_states(tx, {key for key, _ in (*successes, *cancelled)})
        _record_successes(tx, successes, states)
        _consume_occurrences(tx, cancelled)
    wakes = [(key, Scope.SELF) for key, one in ended if not _changes_nothing(tx, one, states)]
    leave_wakes(tx, wakes + [(key, Scope.CHILDREN) for key in {key for key, _ in successes}])


def _changes_nothing(tx: Transaction, one: Execution | Ended, states: Mapping[int, Any]) -> bool:
    """Whether this end cannot make its manifest due sooner than the manager will look anyway.

    A success somebody asked for settles nothing, or puts an interval off. Where the manager waits
    for this run to end, it has no time to look: then it has to be told.
    """
    state = states.get(one.manifest_id or 0)
    if state is None or one.state is not ExecutionState.COMPLETED or one.source not in ASKED_FOR:
        return False
    awake = state.wake_at is not None and state.wake_at > tx.now
    # Two occurrences that vary may come in another order.
    return awake and state.variance_seconds is None


def lock_states(tx: Transaction, manifest_ids: Iterable[int]) -> dict[int, Any]:
    """The states of manifests with what their schedules say, locked until the transaction ends."""
    given = {"manifest_ids": sorted(manifest_ids)}
    rows = tx.ask(_locking(draft_for(tx)), given)
    return {row.manifest_id: row for row in rows}


@cache
def _locking(draft: Draft) -> Select[Any]:
    state = manifest_state.c
    columns = (manifest.c[name] for name in (*TIMED, "external_id", "allow_overlap"))
    return (
        select(
            state.manifest_id, state.wake_at, state.settled_until, state.failures_after, *columns
        )
        .join(manifest)
        .where(among_given(draft, state.manifest_id, "manifest_ids"))
        .order_by(state.manifest_id)
        .with_for_update(of=manifest_state, key_share=True)
    )


def _record_successes(tx: Transaction, successes: Ends, states: Mapping[int, Any]) -> None:
    """Several of one manifest may come at once, if it may overlap: each of them counts."""
    rows: dict[int, dict[str, Any]] = {}
    for key, one in successes:
        if (state := states.get(key)) is None:
            continue
        before = rows.get(key, {})
        moment = _settled_by_success(tx, one, state)
        rows[key] = {
            "manifest_id": key,
            "settled_until": later(before.get("settled_until"), moment),
            "failures_after": max(one.id, before.get("failures_after", state.failures_after)),
            "success_seq": before.get("success_seq", 0) + 1,
        }
    if not rows:
        return
    _add_successes(tx, list(rows.values()))
    scheduled = [key for key, one in successes if one.source in SCHEDULED and key in states]
    _disable_done(tx, [key for key in scheduled if states[key].schedule_kind == "once"])


def _add_successes(tx: Transaction, rows: Sequence[dict[str, Any]]) -> None:
    """Write *rows* of states, in which ``success_seq`` says how many successes came."""
    statement = _counted(draft_for(tx))
    if tx.on_postgresql:
        arrays = {f"given_{name}": [row[name] for row in rows] for name in COUNTED}
        tx.ask(statement, arrays | {"now": tx.now})
    else:
        each = [{f"given_{name}": row[name] for name in COUNTED} | {"now": tx.now} for row in rows]
        tx.connection.execute(statement, each)


@cache
def _counted(draft: Draft) -> Update:
    state = manifest_state.c
    columns = [state[name] for name in COUNTED]
    given: Any = {one.name: bindparam(f"given_{one.name}", type_=one.type) for one in columns}
    if draft.on_postgresql:
        given = unnest_of(columns).c
    return (
        update(manifest_state)
        .where(state.manifest_id == given["manifest_id"])
        .values(
            settled_until=given["settled_until"],
            failures_after=given["failures_after"],
            last_success_at=draft.now,
            success_seq=state.success_seq + given["success_seq"],
        )
    )


def _settled_by_success(tx: Transaction, one: Execution | Ended, state: Any) -> datetime | None:
    """A scheduled success settles all that came due while it ran; a manual one only intervals."""
    scheduled_for = one.scheduled_for if one.source in SCHEDULED else None
    return settled_until(tx, state, scheduled_for)


def settled_until(tx: Transaction, state: Any, scheduled_for: datetime | None) -> datetime | None:
    """Up to when a locked *state* is settled once its run for *scheduled_for* is dealt with."""
    settled: datetime | None = state.settled_until
    try:
        timing = timing_of(state)
    except HeadwayError:
        return settled  # a row somebody edited: the manager says what is wrong with it
    return settled_by_success(
        timing,
        state.external_id,
        settled,
        scheduled_for,
        tx.now,
        overlapping=state.allow_overlap,
    )


def settle_cancelled(tx: Transaction, occurrences: Mapping[int, datetime]) -> None:
    """Count the occurrences of entries that were cancelled before they started as dealt with."""
    if occurrences:
        lock_states(tx, occurrences)
        settle(tx, occurrences)


def _consume_occurrences(tx: Transaction, cancelled: Ends) -> None:
    """A cancelled run is not repeated: its own occurrence counts as dealt with."""
    moments: dict[int, datetime] = {}
    for key, one in cancelled:
        if one.scheduled_for is not None:
            moments[key] = max(one.scheduled_for, moments.get(key, one.scheduled_for))
    settle(tx, moments)


def _disable_done(tx: Transaction, manifest_ids: Sequence[int]) -> None:
    """A once-manifest whose occurrence succeeded is switched off and stays for the record."""
    if manifest_ids:
        done = among(tx, manifest.c.id, manifest_ids)
        tx.connection.execute(update(manifest).where(done).values(enabled=False))
