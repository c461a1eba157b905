"""Leases: which server processes are alive, decided by the database's clock and by nothing else.

Every process has one row, under an id that is drawn anew whenever it comes to life.

- It **renews** its row while the row has not expired. A renewal that touches no row means that the
  process is dead: it stops its jobs and registers again under a new id. An id never comes back.
- It **holds** its row in the transaction that claims, so that whatever it claims has a living owner
  at the moment of the claim. Without a living row it claims nothing.
- Another server **buries** it by deleting its expired row. Until then nothing of it is touched, and
  from then on its runs are orphans: an owner without a row (``outcomes.end_orphans``).

After an outage of the database every row may have expired, of the healthy too, and whoever is back
first would bury all others. So only a server buries that has itself been renewing without a gap for
one whole lease. A gap is more than half a lease: after a shorter outage nobody's row has expired,
since the latest renewal before it is at most a beat old.
"""

from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Interval,
    Select,
    Text,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    true,
    type_coerce,
    update,
)

from headway.store.servers import ServerProcess
from headway.store.tables import server
from headway.store.transaction import CLOCK, Transaction, locked_in_order
from headway.store.types import Instant

NOW = timedelta(0)

# A process that was stopped in the middle of a claim must not keep its row from being buried.
STOPPED_CLAIM_ENDS = "5s"


def register(tx: Transaction, process: ServerProcess, lease: timedelta) -> None:
    """Write the row of a process that comes to life under an id nobody has had."""
    now = from_now(tx, NOW)
    tx.connection.execute(
        insert(server).values(
            id=process.id,
            host=process.host,
            pid=process.pid,
            slots=process.slots,
            **process.said(),
            started_at=now,
            renewed_at=now,
            expires_at=from_now(tx, lease),
            unbroken_since=now,
        )
    )


def renew(tx: Transaction, server_id: str, lease: timedelta) -> bool:
    """Prolong a lease that has not expired; False means that this server is dead."""
    gap = server.c.renewed_at < from_now(tx, -lease / 2)
    now = from_now(tx, NOW)
    renewed = (
        update(server)
        .where(server.c.id == server_id, server.c.expires_at > now)
        .values(
            renewed_at=now,
            expires_at=from_now(tx, lease),
            unbroken_since=case((gap, now), else_=server.c.unbroken_since),
        )
    )
    return tx.connection.execute(renewed).rowcount > 0


def hold(tx: Transaction, server_id: str, only_if: ColumnElement[bool] | None = None) -> bool:
    """Keep one's own living row from being buried until the transaction ends; False without one.

    A statement of its own before the claim: a snapshot taken with the lock would be older than it.
    Where it is asked *only_if* something is the case, False also says that it is not.
    """
    own = holding(tx.on_postgresql, tx.ticking, only_if)
    held = tx.ask(own, {"id": server_id, "now": tx.now})
    return any(row.wanted for row in held)


@cache
def holding(on_postgresql: bool, ticking: bool, only_if: ColumnElement[bool] | None) -> Select[Any]:
    """The statement behind :func:`hold`."""
    columns: list[ColumnElement[Any]] = [(true() if only_if is None else only_if).label("wanted")]
    if on_postgresql:
        limit = func.set_config("idle_in_transaction_session_timeout", STOPPED_CLAIM_ENDS, True)
        columns.append(limit)
    clock: ColumnElement[Any] = CLOCK if ticking else bindparam("now", type_=Instant)
    return (
        select(*columns)
        .where(server.c.id == bindparam("id", type_=Text), server.c.expires_at > clock)
        .with_for_update(read=True, key_share=True)
    )


def bury(tx: Transaction, by: str, lease: timedelta) -> list[str]:
    """Delete expired rows, unless *by* was itself away within the last *lease*; returns their ids.

    A row somebody holds or renews at this moment is left alone.
    """
    now, own = from_now(tx, NOW), server.alias("own")
    steady = exists().where(
        own.c.id == by, own.c.expires_at > now, own.c.unbroken_since <= from_now(tx, -lease)
    )
    expired = and_(server.c.expires_at <= now, steady)
    statement = (
        delete(server)
        .where(locked_in_order(tx, server, expired, wait=False))
        .returning(server.c.id)
    )
    return sorted(tx.connection.execute(statement).scalars())


def leave(tx: Transaction, server_id: str) -> None:
    """Remove the row of a process that ends and owns nothing any more."""
    tx.connection.execute(delete(server).where(server.c.id == server_id))


def from_now(tx: Transaction, delay: timedelta) -> ColumnElement[Any]:
    """So long from now, by the clock of the database at the moment a row is looked at."""
    if not tx.ticking:
        return literal(tx.now + delay, Instant)
    return type_coerce(CLOCK.op("+")(literal(delay, Interval)), Instant)
