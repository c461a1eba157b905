"""Server processes as their page shows them."""

import json
from typing import Any

from sqlalchemy import Row, func, select

from headway.domain.views import ServerOverview
from headway.store.tables import execution, server
from headway.store.transaction import Transaction


def list_servers(tx: Transaction) -> list[ServerOverview]:
    """Every process that has a row, the youngest last."""
    rows = tx.connection.execute(select(server).order_by(server.c.started_at, server.c.id)).all()
    counted = select(execution.c.owner, func.count()).where(execution.c.owner.is_not(None))
    running = dict(
        (owner, number)
        for owner, number in tx.connection.execute(counted.group_by(execution.c.owner))
    )
    return [_overview(tx, row, running.get(row.id, 0)) for row in rows]


def _overview(tx: Transaction, row: Row[Any], running: int) -> ServerOverview:
    lease = row.expires_at - row.renewed_at
    return ServerOverview(
        id=row.id,
        host=row.host,
        pid=row.pid,
        roles=tuple(json.loads(row.roles)),
        workflows=tuple(json.loads(row.workflows)),
        slots=row.slots,
        running=running,
        started_at=row.started_at,
        renewed_at=row.renewed_at,
        expires_at=row.expires_at,
        unbroken_since=row.unbroken_since,
        alive=row.expires_at > tx.now,
        late=tx.now - row.renewed_at > lease / 3,
    )
