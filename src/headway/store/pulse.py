"""What there is to do, for whom, in one statement: what an idle process asks instead of looking.

It may say that there is something where a closer look finds nothing to do, never the reverse.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, literal, literal_column, or_, select

from headway.domain.azolla.artifacts import EventType
from headway.store.eligibility import delayed, queued, ready
from headway.store.events import to_do
from headway.store.executions import IN_PROGRESS, IS_LOCAL, PENDING
from headway.store.live import may_live
from headway.store.tables import execution, manifest_state, server, wake, work_queue
from headway.store.transaction import Transaction
from headway.store.types import Instant


@dataclass(frozen=True)
class Pulse:
    """Whether there may be something: to manage, to dispatch, to claim, to end as an orphan, that
    is owned by whoever asked, or requested of the Manifest Scheduler Worker."""

    manage: bool = False
    dispatch: bool = False
    claim: bool = False
    orphans: bool = False
    owned: bool = False
    requests: bool = False


def take_pulse(tx: Transaction, owner: str) -> Pulse:
    """Ask once for everybody; *owner* is who asks."""
    now = _now(tx)
    # Whatever lives may run into a timeout, which only the manager sees.
    lives = select(execution.c.id).where(may_live(tx)).exists()
    manage = or_(exists().where(manifest_state.c.wake_at <= now), _any(wake), lives)
    waiting = ready(work_queue)
    come = and_(queued(work_queue), delayed(work_queue), work_queue.c.scheduled_at <= now)
    dispatch = or_(exists().where(waiting), exists().where(come))
    claim = exists().where(PENDING, IS_LOCAL, may_live(tx))
    ownerless = ~exists().where(server.c.id == execution.c.owner)
    buried = and_(IN_PROGRESS, ownerless, may_live(tx))
    orphans = or_(exists().where(server.c.expires_at <= now), exists().where(buried))
    owned = exists().where(IN_PROGRESS, execution.c.owner == owner, may_live(tx))
    requests = exists().where(to_do(EventType.MANIFEST_REQUESTED))
    row = tx.connection.execute(select(manage, dispatch, claim, orphans, owned, requests)).one()
    return Pulse(*(bool(said) for said in row))


def _any(table: Any) -> ColumnElement[bool]:
    return exists().where(table.c.id.is_not(None))


def _now(tx: Transaction) -> ColumnElement[Any]:
    """The database's clock, in the form that lets an index be used: it stands still meanwhile."""
    if not tx.ticking:
        return literal(tx.now, Instant)
    return literal_column("statement_timestamp()", Instant)
