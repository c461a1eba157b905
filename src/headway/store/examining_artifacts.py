"""What cannot be among the artifacts of a deployment, in words."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Table, false, select

from headway.domain.azolla.artifacts import CaptureBuffer, Objective, PauseState
from headway.domain.text import printable
from headway.store.artifact_rows import from_row
from headway.store.events import KILLED
from headway.store.objectives import own_azolla_id
from headway.store.servers import living_managers
from headway.store.tables import blocker_ref, capture_buffer, event, objective, pause_state
from headway.store.transaction import Transaction, among

PAGE = 1000
ROW_LIMIT = 200


def managers_without_objective(tx: Transaction) -> list[str]:
    """Living managers of a deployment that has no standing objective."""
    if own_azolla_id(tx) is not None:
        return []
    return [f"server {key}" for key in living_managers(tx)]


def unreadable(tx: Transaction) -> list[str]:
    """Artifacts somebody has written by hand and nobody can read, of the newest of each kind."""
    looks = (
        _unreadable(tx, objective, "objective_id", "updated_at", _objective),
        _unreadable(tx, pause_state, "pause_id", "created_at", _pause),
        _unreadable(tx, capture_buffer, "capture_id", "created_at", _capture),
    )
    return [row for look in looks for row in look]


def parked(tx: Transaction) -> list[str]:
    """Requests that wait for a person, and why the last attempt failed."""
    waiting = select(event).where(event.c.parked_at.is_not(None), event.c.processed == false())
    rows = tx.connection.execute(waiting.order_by(event.c.created_at, event.c.event_id))
    return [
        printable(f"{row.event_id}: {row.last_error or KILLED}", ROW_LIMIT).replace("\n", " ")
        for row in rows
    ]


def _objective(tx: Transaction, row: dict[str, Any]) -> None:
    from_row(Objective, row, blocked_on=())
    named = json.loads(row["blocked_on"])
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise ValueError("blocked_on is no list of ids")
    known = select(blocker_ref.c.blocker_id).where(among(tx, blocker_ref.c.blocker_id, named))
    lost = set(named) - set(tx.connection.execute(known).scalars() if named else ())
    if lost:
        raise ValueError(f"there is no blocker {min(lost)}")


def _pause(tx: Transaction, row: dict[str, Any]) -> None:
    from_row(PauseState, row)


def _capture(tx: Transaction, row: dict[str, Any]) -> None:
    from_row(CaptureBuffer, row)


def _unreadable(
    tx: Transaction,
    table: Table,
    key: str,
    moment: str,
    read: Callable[[Transaction, dict[str, Any]], None],
) -> Iterator[str]:
    newest = select(table).order_by(table.c[moment].desc()).limit(PAGE)
    for row in tx.connection.execute(newest).mappings().all():
        try:
            read(tx, dict(row))
        except (ValueError, TypeError) as error:
            why = " ".join(str(error).split())
            kind = table.name.removeprefix("headway_").replace("_", " ")
            yield printable(f"{kind} {row[key]}: {why}", ROW_LIMIT)
