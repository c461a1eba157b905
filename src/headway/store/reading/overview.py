"""How the whole deployment stands: what waits and runs, how it went lately, what is next."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, func, select

from headway.domain.execution import ExecutionState
from headway.domain.manifest import DEPENDENTS
from headway.domain.spans import HOUR, MINUTE
from headway.domain.views import BADGED_TO, COUNTED_TO, NextRun, Summary, ThroughputPoint, Waiting
from headway.store.dead_letters import waits
from headway.store.eligibility import QUEUED, delayed, in_order, ready
from headway.store.reading.bounded import capped_count
from headway.store.reading.manifests import DECLARED
from headway.store.reading.throughput import throughput
from headway.store.reading.timeline import first_dispatch
from headway.store.tables import (
    dead_letter,
    execution,
    manifest,
    manifest_group,
    manifest_state,
    server,
    work_queue,
)
from headway.store.transaction import Transaction, among, word

RATED = 5
SHORTEST = timedelta(seconds=10)
LOOKED_AT = 500


def summary(tx: Transaction) -> Summary:
    """What waits and runs now, and how it went lately."""
    states = _live_states(tx)
    points = throughput(tx, HOUR).points
    lately, rated = _lately(points, tx.now, first_dispatch(tx))
    minutes = rated / MINUTE
    completed = sum(one.completed for one in points)
    ended = completed + sum(one.failed for one in points)
    slots = _living_slots(tx)
    return Summary(
        now=tx.now,
        queued=_count(tx, _ready_entries()),
        delayed=_count(tx, select(work_queue.c.id).where(QUEUED, delayed(work_queue))),
        pending=states.get(ExecutionState.PENDING, 0),
        running=states.get(ExecutionState.IN_PROGRESS, 0),
        completed_per_minute=sum(one.completed for one in lately) / minutes,
        failed_per_minute=sum(one.failed for one in lately) / minutes,
        success_rate=completed / ended if ended else None,
        dead_letters=_count(tx, select(dead_letter.c.id).where(waits())),
        workers=len(slots),
        slots=sum(slots),
        rated=rated,
    )


def _lately(
    points: Sequence[ThroughputPoint], now: datetime, began: datetime | None
) -> tuple[Sequence[ThroughputPoint], timedelta]:
    """The last whole minutes; of a deployment that is younger all there is, and since when."""
    if began is not None and now - began < (RATED + 1) * MINUTE:
        return points[-RATED - 2 :], max(now - began, SHORTEST)
    return points[-RATED - 1 : -1], RATED * MINUTE


def waiting(tx: Transaction) -> Waiting:
    """What runs, waits in the queue and waits for a person, by a short look at each."""
    running = select(execution.c.id).where(execution.c.state == word(ExecutionState.IN_PROGRESS))
    return Waiting(
        running=_count(tx, running, BADGED_TO),
        queued=_count(tx, _ready_entries(), BADGED_TO),
        dead_letters=_count(tx, select(dead_letter.c.id).where(waits()), BADGED_TO),
    )


def _ready_entries() -> Select[Any]:
    """In the order of their index, so that it is read and not the table with all that is over."""
    order = (work_queue.c.group_id, *in_order(work_queue))
    return select(work_queue.c.id).where(ready(work_queue)).order_by(*order)


def _live_states(tx: Transaction) -> dict[str, int]:
    statement = select(execution.c.state, func.count()).group_by(execution.c.state)
    return {state: number for state, number in tx.connection.execute(statement)}


def _living_slots(tx: Transaction) -> list[int]:
    living = select(server.c.slots).where(server.c.expires_at > tx.now, server.c.slots > 0)
    return list(tx.connection.execute(living).scalars())


def _count(tx: Transaction, rows: Select[Any], most: int = COUNTED_TO) -> int:
    return int(tx.connection.execute(capped_count(rows, most)).scalar_one())


def next_runs(tx: Transaction, limit: int) -> list[NextRun]:
    """What runs next by itself, by the time the manager looks at it."""
    state = manifest_state.c
    first = (
        select(state.manifest_id, state.wake_at)
        .where(state.wake_at.is_not(None))
        .order_by(state.wake_at, state.manifest_id)
        .limit(max(LOOKED_AT, limit))
    )
    wakes = {key: wake_at for key, wake_at in tx.connection.execute(first)}
    statement = (
        select(
            manifest.c.id,
            manifest.c.external_id,
            manifest.c.workflow,
            manifest_group.c.name.label("group_name"),
        )
        .join(manifest_group)
        .where(
            among(tx, manifest.c.id, wakes),
            DECLARED,
            manifest.c.enabled,
            manifest_group.c.enabled,
            manifest.c.schedule_kind.not_in([word(kind) for kind in DEPENDENTS]),
        )
    )
    found = {row.id: row for row in tx.connection.execute(statement)}
    runs = [(found[key], wake_at) for key, wake_at in wakes.items() if key in found]
    return [NextRun(row.external_id, row.group_name, row.workflow, at) for row, at in runs[:limit]]
