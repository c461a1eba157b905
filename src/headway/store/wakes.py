"""The wake inbox: who may make a manifest due sooner leaves a row, the manager alone reads it.

Only the manager writes ``manifest_state.wake_at``; writing it from both sides loses wake-ups.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from headway.store.rows import unnested
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


def set_wake_times(tx: Transaction, times: Mapping[int, datetime | None]) -> None:
    """Store when each manifest is to be looked at next; None means when something wakes it."""
    _write(tx, manifest_state.c.wake_at, times)


def settle(tx: Transaction, moments: Mapping[int, datetime]) -> None:
    """Count the occurrences of manifests as dealt with up to these moments; never backwards."""
    settled = manifest_state.c.settled_until
    _write(tx, settled, moments, lambda moment: or_(settled.is_(None), settled < moment))


Guard = Callable[[ColumnElement[Any]], ColumnElement[bool]]


def _write(
    tx: Transaction,
    written: Column[Any],
    moments: Mapping[int, datetime | None],
    guard: Guard = lambda moment: true(),
) -> None:
    """Write one column of many states; what somebody else is changing is left to its wake-up."""
    if not moments:
        return
    rows = [(key, moments[key]) for key in sorted(moments)]
    if tx.on_postgresql:
        given = unnested((manifest_state.c.manifest_id, written), rows)
        chosen = and_(_free(tx, moments), manifest_state.c.manifest_id == given.c.manifest_id)
        moment = given.c[written.name]
        tx.connection.execute(
            update(manifest_state).where(chosen, guard(moment)).values({written: moment})
        )
        return
    one = bindparam("b_moment", type_=written.type)
    this = manifest_state.c.manifest_id == bindparam("b_manifest_id")
    tx.connection.execute(
        update(manifest_state).where(this, guard(one)).values({written: one}),
        [{"b_manifest_id": key, "b_moment": moment} for key, moment in rows],
    )


def _free(tx: Transaction, manifest_ids: Iterable[int]) -> ColumnElement[bool]:
    """Those of these states that nobody else is changing, locked in the order of their ids."""
    locked = (
        select(manifest_state.c.manifest_id)
        .where(among(tx, manifest_state.c.manifest_id, manifest_ids))
        .order_by(manifest_state.c.manifest_id)
        .with_for_update(skip_locked=True, key_share=True)
        .cte("locked")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    return manifest_state.c.manifest_id.in_(select(locked.c.manifest_id))


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
