"""What the end of a run means for its manifest: last success, settled occurrences, wake-ups."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select, update

from headway.domain.execution import Execution, ExecutionState
from headway.domain.timing import settled_by_success
from headway.domain.work_queue import Source
from headway.errors import HeadwayError
from headway.store.manifest_rows import schedule_of, time_of
from headway.store.overlapping import later
from headway.store.tables import manifest, manifest_state
from headway.store.transaction import Transaction, among
from headway.store.wakes import Scope, leave_wakes, settle

# A success of these settles the occurrence it stood for.
SCHEDULED = frozenset({Source.SCHEDULE, Source.REQUEUE})


Ended = Sequence[tuple[int, Execution]]


def settle_ended(tx: Transaction, ended: Ended) -> None:
    """Write what the ended runs mean for their manifests, and ask the manager to look again."""
    successes = [(key, one) for key, one in ended if one.state is ExecutionState.COMPLETED]
    cancelled = [(key, one) for key, one in ended if one.state is ExecutionState.CANCELLED]
    if successes or cancelled:
        states = lock_states(tx, {key for key, _ in (*successes, *cancelled)})
        _record_successes(tx, successes, states)
        _consume_occurrences(tx, cancelled)
    wakes = [(key, Scope.SELF) for key, _ in ended]
    leave_wakes(tx, wakes + [(key, Scope.CHILDREN) for key in {key for key, _ in successes}])


def lock_states(tx: Transaction, manifest_ids: Iterable[int]) -> dict[int, Any]:
    """The states of manifests with their definitions, locked until the transaction ends."""
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


def _record_successes(tx: Transaction, successes: Ended, states: Mapping[int, Any]) -> None:
    """Several of one manifest may come at once, if it may overlap: each of them counts."""
    rows: dict[int, dict[str, Any]] = {}
    for key, one in successes:
        if (state := states.get(key)) is None:
            continue
        before = rows.get(key, {})
        moment = _settled_by_success(tx, one, state)
        rows[key] = {
            "b_manifest_id": key,
            "b_settled_until": later(before.get("b_settled_until"), moment),
            "b_failures_after": max(one.id, before.get("b_failures_after", state.failures_after)),
            "b_successes": before.get("b_successes", 0) + 1,
        }
    if not rows:
        return
    tx.connection.execute(
        update(manifest_state)
        .where(manifest_state.c.manifest_id == bindparam("b_manifest_id"))
        .values(
            settled_until=bindparam("b_settled_until"),
            failures_after=bindparam("b_failures_after"),
            last_success_at=tx.now,
            success_seq=manifest_state.c.success_seq + bindparam("b_successes"),
        ),
        list(rows.values()),
    )
    scheduled = [key for key, one in successes if one.source in SCHEDULED and key in states]
    _disable_done(tx, [key for key in scheduled if states[key].schedule_kind == "once"])


def _settled_by_success(tx: Transaction, one: Execution, state: Any) -> datetime | None:
    """A scheduled success settles all that came due while it ran; a manual one only intervals."""
    scheduled_for = one.scheduled_for if one.source in SCHEDULED else None
    return settled_until(tx, state, scheduled_for)


def settled_until(tx: Transaction, state: Any, scheduled_for: datetime | None) -> datetime | None:
    """Up to when a locked *state* is settled once its run for *scheduled_for* is dealt with."""
    settled: datetime | None = state.settled_until
    try:
        timing = time_of(state).timing(schedule_of(state))
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


def _consume_occurrences(tx: Transaction, cancelled: Ended) -> None:
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
