"""How much there is of everything, for who measures: counts that read no more than so many rows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, and_, exists, func, literal, select

from headway.domain.execution import ExecutionState
from headway.store.dead_letters import waits
from headway.store.eligibility import delayed, queued, ready
from headway.store.tables import (
    execution,
    manifest,
    manifest_group,
    server,
    work_queue,
)
from headway.store.transaction import Transaction, among

# A count that reaches it says "as many at least": nobody needs to know it better than that, and
# who asks every few seconds must not read a million rows.
COUNTED = 100_000


@dataclass(frozen=True)
class Gauges:
    """What waits, what runs, and who is there. ``groups`` is waiting and running of the largest
    groups that several manifests share; the rest is counted in the totals only."""

    ready: int = 0
    delayed: int = 0
    pending: int = 0
    running: int = 0
    dead_letters: int = 0
    servers: int = 0
    slots: int = 0
    waiting_seconds: float = 0.0
    groups: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def read_gauges(tx: Transaction, groups: int) -> Gauges:
    """Count everything once; of at most so many *groups* by name."""
    waiting, oldest = _waiting(tx)
    live = _live(tx)
    running = Counter({group: live[group, state] for group, state in live if state == RUNNING})
    servers, slots = _servers(tx)
    return Gauges(
        ready=waiting.total(),
        delayed=_counted(tx, and_(queued(work_queue), delayed(work_queue))),
        pending=live.total() - running.total(),
        running=running.total(),
        dead_letters=_counted(tx, waits()),
        servers=servers,
        slots=slots,
        waiting_seconds=max(0.0, (tx.now - oldest).total_seconds()) if oldest else 0.0,
        groups=_by_name(tx, waiting, running, groups),
    )


RUNNING = ExecutionState.IN_PROGRESS


def _counted(tx: Transaction, condition: ColumnElement[bool]) -> int:
    rows = select(literal(1)).where(condition).limit(COUNTED).subquery()
    return int(tx.connection.execute(select(func.count()).select_from(rows)).scalar_one())


def _waiting(tx: Transaction) -> tuple[Counter[int | None], datetime | None]:
    """How many entries of each group are ready, and since when the oldest of them is."""
    since = func.coalesce(work_queue.c.scheduled_at, work_queue.c.created_at).label("since")
    rows = select(work_queue.c.group_id, since).where(ready(work_queue)).limit(COUNTED).subquery()
    statement = select(rows.c.group_id, func.count(), func.min(rows.c.since)).group_by(
        rows.c.group_id
    )
    found = tx.connection.execute(statement).all()
    counts = Counter({group: many for group, many, _ in found})
    return counts, min((oldest for _, _, oldest in found), default=None)


def _live(tx: Transaction) -> Counter[tuple[int | None, str]]:
    rows = select(execution.c.group_id, execution.c.state).limit(COUNTED).subquery()
    statement = select(rows.c.group_id, rows.c.state, func.count()).group_by(
        rows.c.group_id, rows.c.state
    )
    return Counter({(row[0], row[1]): row[2] for row in tx.connection.execute(statement)})


def _servers(tx: Transaction) -> tuple[int, int]:
    alive = server.c.expires_at > tx.now
    statement = select(func.count(), func.coalesce(func.sum(server.c.slots), 0)).where(alive)
    row = tx.connection.execute(statement).one()
    return int(row[0]), int(row[1])


def _by_name(
    tx: Transaction, waiting: Counter[int | None], running: Counter[int | None], most: int
) -> dict[str, tuple[int, int]]:
    """The largest groups, without those that are a manifest's own: these are called like it."""
    largest = [group for group, _ in (waiting + running).most_common(most) if group is not None]
    own = exists().where(manifest.c.external_id == manifest_group.c.name)
    statement = select(manifest_group.c.id, manifest_group.c.name).where(
        among(tx, manifest_group.c.id, largest), ~own
    )
    names = tx.connection.execute(statement).all()
    return {name: (waiting[key], running[key]) for key, name in names}
