"""Server processes as others see them: how many jobs each can run, and which workflows.

A row that is not renewed expires (``leases``); then nothing more is dispatched for its sake.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, or_, select

from headway.store.tables import execution, execution_history, server
from headway.store.transaction import Transaction


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
