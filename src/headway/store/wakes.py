"""The wake inbox: who may make a manifest due sooner leaves a row, the manager alone reads it.

Only the manager writes ``manifest_state.wake_at``; writing it from both sides loses wake-ups.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Select, bindparam, delete, func, insert, or_, select, union, update

from headway.store.tables import dependency, manifest, manifest_state, wake
from headway.store.transaction import Transaction, among


class Scope(StrEnum):
    """Whom a wake-up is for."""

    SELF = "self"
    CHILDREN = "children"
    GROUP = "group"


def leave_wakes(tx: Transaction, wakes: Sequence[tuple[int, Scope]]) -> None:
    """Ask the manager to look at manifests again; the id is a group's for :attr:`Scope.GROUP`."""
    rows = [
        {
            "manifest_id": None if scope is Scope.GROUP else subject,
            "group_id": subject if scope is Scope.GROUP else None,
            "scope": scope.value,
        }
        for subject, scope in wakes
    ]
    if rows:
        tx.connection.execute(insert(wake), rows)


def absorb_wakes(tx: Transaction, limit: int) -> int:
    """Take wake rows out of the inbox and make their manifests candidates now."""
    oldest = select(wake.c.id).order_by(wake.c.id).limit(limit).with_for_update(skip_locked=True)
    taken = delete(wake).where(wake.c.id.in_(oldest)).returning(*wake.c)
    rows = tx.connection.execute(taken).all()
    if rows:
        subjects: dict[Scope, list[int]] = {scope: [] for scope in Scope}
        for row in rows:
            subjects[Scope(row.scope)].append(row.manifest_id or row.group_id)
        _wake_now(tx, subjects)
    return len(rows)


def _wake_now(tx: Transaction, subjects: dict[Scope, list[int]]) -> None:
    concerned = union(
        select(manifest.c.id).where(among(tx, manifest.c.id, subjects[Scope.SELF])),
        select(dependency.c.child_id).where(
            among(tx, dependency.c.parent_id, subjects[Scope.CHILDREN])
        ),
        select(manifest.c.id).where(among(tx, manifest.c.group_id, subjects[Scope.GROUP])),
    ).subquery()
    in_order: Select[tuple[int]] = (
        select(manifest_state.c.manifest_id)
        .where(
            manifest_state.c.manifest_id.in_(select(concerned.c[0])),
            or_(manifest_state.c.wake_at.is_(None), manifest_state.c.wake_at > tx.now),
        )
        .order_by(manifest_state.c.manifest_id)
        .with_for_update(key_share=True)
    )
    statement = update(manifest_state).where(manifest_state.c.manifest_id.in_(in_order))
    tx.connection.execute(statement.values(wake_at=tx.now))


def set_wake_times(tx: Transaction, times: dict[int, datetime | None]) -> None:
    """Store when each manifest is to be looked at next; None means when something wakes it."""
    if times:
        statement = update(manifest_state).where(
            manifest_state.c.manifest_id == bindparam("b_manifest_id")
        )
        rows = [{"b_manifest_id": key, "wake_at": times[key]} for key in sorted(times)]
        tx.connection.execute(statement.values(wake_at=bindparam("wake_at")), rows)


def next_wake_at(tx: Transaction) -> datetime | None:
    """The earliest moment at which the manager has something to look at."""
    if tx.connection.execute(select(wake.c.id).limit(1)).first() is not None:
        return tx.now
    # SQLite uses the partial index only where the condition is repeated.
    earliest = select(func.min(manifest_state.c.wake_at)).where(
        manifest_state.c.wake_at.is_not(None)
    )
    moment: datetime | None = tx.connection.execute(earliest).scalar_one()
    return moment
