"""Server processes: each says that it lives, how many jobs it can run, and which workflows.

A row that is not renewed expires; then nothing more is dispatched for that server's sake.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, exists, insert, or_, select, update

from headway.store.tables import execution, execution_history, server
from headway.store.transaction import Transaction

FORGOTTEN_AFTER = timedelta(days=1)


@dataclass(frozen=True)
class ServerProcess:
    """One process of headway, as it presents itself."""

    id: str
    host: str
    pid: int
    roles: Collection[str]
    workflows: Collection[str]
    slots: int


@dataclass(frozen=True)
class Workers:
    """What the living workers can do together."""

    slots: int
    workflows: frozenset[str]


def keep_alive(tx: Transaction, process: ServerProcess, lease: timedelta) -> None:
    """Renew the row of a process, or write it if it has none."""
    renewed = (
        update(server)
        .where(server.c.id == process.id)
        .values(renewed_at=tx.now, expires_at=tx.now + lease)
    )
    if tx.connection.execute(renewed).rowcount:
        return
    tx.connection.execute(delete(server).where(server.c.expires_at < tx.now - FORGOTTEN_AFTER))
    tx.connection.execute(
        insert(server).values(
            id=process.id,
            host=process.host,
            pid=process.pid,
            roles=json.dumps(sorted(process.roles)),
            workflows=json.dumps(sorted(process.workflows)),
            slots=process.slots,
            started_at=tx.now,
            renewed_at=tx.now,
            expires_at=tx.now + lease,
        )
    )


def leave(tx: Transaction, server_id: str) -> None:
    """Remove the row of a process that ends."""
    tx.connection.execute(delete(server).where(server.c.id == server_id))


def claimed_since(tx: Transaction, moment: datetime) -> bool:
    """Whether any worker has started anything since *moment*."""
    live = exists().where(execution.c.started_at >= moment)
    # By the time it ended, which is indexed; whatever started since has ended since.
    history = execution_history.c
    ended = exists().where(history.finished_at >= moment, history.started_at >= moment)
    return bool(tx.connection.execute(select(or_(live, ended))).scalar_one())


def living_workers(tx: Transaction) -> Workers:
    """The slots and workflows of every worker whose row has not expired."""
    living = select(server.c.slots, server.c.workflows).where(
        server.c.expires_at > tx.now, server.c.slots > 0
    )
    rows = tx.connection.execute(living).all()
    known = (name for row in rows for name in json.loads(row.workflows))
    return Workers(sum(row.slots for row in rows), frozenset(known))
