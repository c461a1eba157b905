"""The wake inbox: who may make a manifest due sooner leaves a row, the manager alone reads it.

Only the manager writes ``manifest_state.wake_at``; writing it from both sides loses wake-ups.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Column, and_, bindparam, delete, func, insert, or_, select, update

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
    """Take wake rows out of the inbox and make their manifests candidates now.

    A row stays while the state of a manifest it concerns is being changed: nobody who changes one
    may hold up the whole cycle, and whoever does leaves the wake-up in the inbox until they are
    done.
    """
    oldest = select(wake).order_by(wake.c.id).limit(limit).with_for_update(skip_locked=True)
    concerned = _concerned(tx, tx.connection.execute(oldest).all())
    if not concerned:
        return 0
    manifests = {key for keys in concerned.values() for key in keys}
    states = select(manifest_state.c.manifest_id).where(
        among(tx, manifest_state.c.manifest_id, manifests)
    )
    existing = set(tx.connection.execute(states).scalars())
    in_order = states.order_by(manifest_state.c.manifest_id)
    free = set(
        tx.connection.execute(in_order.with_for_update(skip_locked=True, key_share=True)).scalars()
    )
    _wake_now(tx, free)
    done = [row for row, keys in concerned.items() if keys & existing <= free]
    tx.connection.execute(delete(wake).where(among(tx, wake.c.id, done)))
    return len(done)


def _concerned(tx: Transaction, rows: Sequence[Any]) -> dict[int, set[int]]:
    """The manifests each wake row is about."""
    parents = [row.manifest_id for row in rows if row.scope == Scope.CHILDREN]
    groups = [row.group_id for row in rows if row.scope == Scope.GROUP]
    children = _listed(tx, dependency.c.parent_id, dependency.c.child_id, parents)
    members = _listed(tx, manifest.c.group_id, manifest.c.id, groups)
    concerned = {}
    for row in rows:
        if row.scope == Scope.SELF:
            concerned[row.id] = {row.manifest_id}
        elif row.scope == Scope.CHILDREN:
            concerned[row.id] = children.get(row.manifest_id, set())
        else:
            concerned[row.id] = members.get(row.group_id, set())
    return concerned


def _listed(
    tx: Transaction, by: Column[Any], listed: Column[Any], keys: Sequence[int]
) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    if keys:
        for key, value in tx.connection.execute(select(by, listed).where(among(tx, by, keys))):
            found.setdefault(key, set()).add(value)
    return found


def _wake_now(tx: Transaction, manifest_ids: Collection[int]) -> None:
    later = or_(manifest_state.c.wake_at.is_(None), manifest_state.c.wake_at > tx.now)
    chosen = and_(among(tx, manifest_state.c.manifest_id, manifest_ids), later)
    tx.connection.execute(update(manifest_state).where(chosen).values(wake_at=tx.now))


def set_wake_times(tx: Transaction, times: dict[int, datetime | None]) -> None:
    """Store when each manifest is to be looked at next; None means when something wakes it."""
    if times:
        statement = update(manifest_state).where(
            manifest_state.c.manifest_id == bindparam("b_manifest_id")
        )
        rows = [{"b_manifest_id": key, "wake_at": times[key]} for key in sorted(times)]
        tx.connection.execute(statement.values(wake_at=bindparam("wake_at")), rows)


def settle(tx: Transaction, moments: dict[int, datetime]) -> None:
    """Count the occurrences of manifests as dealt with up to these moments; never backwards."""
    if moments:
        state = manifest_state.c
        statement = (
            update(manifest_state)
            .where(
                state.manifest_id == bindparam("b_manifest_id"),
                or_(state.settled_until.is_(None), state.settled_until < bindparam("b_moment")),
            )
            .values(settled_until=bindparam("b_moment"))
        )
        rows = [{"b_manifest_id": key, "b_moment": moments[key]} for key in sorted(moments)]
        tx.connection.execute(statement, rows)


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
