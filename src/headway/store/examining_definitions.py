"""What cannot be among manifests, edges, dead letters and servers, and how it is put right."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from headway.domain.graph import on_cycles
from headway.store import resolution
from headway.store.dead_letters import AWAITING
from headway.store.edges import all_edges
from headway.store.retention import is_kept
from headway.store.tables import (
    dead_letter,
    dependency,
    execution_history,
    manifest,
    manifest_group,
    manifest_state,
    server,
    wake,
)
from headway.store.transaction import Transaction, among, locked_in_order
from headway.store.wakes import Scope, leave_wakes

PAGE = 1000
LIVING = manifest.c.removed_at.is_(None)


def circles(tx: Transaction) -> list[str]:
    """Manifests and groups that wait for one another."""
    edges, groups = all_edges(tx)
    between = {(groups[above], groups[below]) for above, below in edges}
    apart = [(above, below) for above, below in between if above != below]
    return [f"manifest {name}" for name in sorted(on_cycles(edges))] + [
        f"group {name}" for name in sorted(on_cycles(apart))
    ]


def without_state(tx: Transaction) -> list[str]:
    """Manifests the manager cannot see: the row that says when to look at them is missing."""
    return [f"manifest {row.external_id}" for row in tx.connection.execute(_stateless())]


def give_state(tx: Transaction) -> int:
    """Write the missing rows; the manager looks at these manifests at once."""
    missing = tx.connection.execute(_stateless()).all()
    rows = [{"manifest_id": row.id, "wake_at": tx.now} for row in missing]
    if rows:
        tx.connection.execute(insert(manifest_state), rows)
    return len(rows)


def _stateless() -> Select[Any]:
    known = exists().where(manifest_state.c.manifest_id == manifest.c.id)
    chosen = select(manifest.c.id, manifest.c.external_id).where(LIVING, ~known)
    return chosen.order_by(manifest.c.id).limit(PAGE)


def without_group(tx: Transaction) -> list[str]:
    """Manifests the manager cannot see: the group they are in does not exist."""
    known = exists().where(manifest_group.c.id == manifest.c.group_id)
    chosen = select(manifest.c.external_id, manifest.c.group_id).where(LIVING, ~known)
    rows = tx.connection.execute(chosen.order_by(manifest.c.id).limit(PAGE))
    return [f"manifest {row.external_id}, group {row.group_id}" for row in rows]


def settled_ahead(tx: Transaction, moment: datetime) -> list[str]:
    """Manifests whose occurrences count as dealt with up to later than *moment*."""
    ahead = select(manifest.c.external_id, manifest_state.c.settled_until).join(manifest_state)
    chosen = ahead.where(LIVING, manifest_state.c.settled_until > moment)
    rows = tx.connection.execute(chosen.order_by(manifest.c.id).limit(PAGE))
    return [
        f"manifest {row.external_id}: settled until {row.settled_until:%Y-%m-%d %H:%M:%S}"
        for row in rows
    ]


def settle_until_now(tx: Transaction, moment: datetime) -> int:
    """Let their next occurrence be the next one from now on, and have the manager look."""
    ahead = select(manifest_state.c.manifest_id).where(manifest_state.c.settled_until > moment)
    in_order = ahead.order_by(manifest_state.c.manifest_id).limit(PAGE).with_for_update()
    keys = list(tx.connection.execute(in_order).scalars())
    chosen = among(tx, manifest_state.c.manifest_id, keys)
    tx.connection.execute(update(manifest_state).where(chosen).values(settled_until=tx.now))
    leave_wakes(tx, [(key, Scope.SELF) for key in keys])
    return len(keys)


def about_to_be_woken(tx: Transaction, manifest_ids: Collection[int]) -> set[int]:
    """Those of these manifests that a row in the wake inbox is about."""
    itself = exists().where(wake.c.scope == Scope.SELF.value, wake.c.manifest_id == manifest.c.id)
    parents = exists().where(
        wake.c.scope == Scope.CHILDREN.value,
        wake.c.manifest_id == dependency.c.parent_id,
        dependency.c.child_id == manifest.c.id,
    )
    group = exists().where(
        wake.c.scope == Scope.GROUP.value, wake.c.group_id == manifest.c.group_id
    )
    chosen = and_(among(tx, manifest.c.id, manifest_ids), or_(itself, parents, group))
    return set(tx.connection.execute(select(manifest.c.id).where(chosen)).scalars())


def waiting_twice(tx: Transaction) -> list[str]:
    """Dead letters beside which a newer one of the same manifest waits."""
    return [f"dead letter {key}" for key in tx.connection.execute(_waiting_twice()).scalars()]


def resolve_waiting_twice(tx: Transaction) -> int:
    """Resolve all but the newest of each manifest; nothing else changes, for that one waits on."""
    older = tx.connection.execute(_waiting_twice()).scalars().all()
    note = "a newer dead letter of this manifest waits as well"
    values = {"status": "acknowledged", "resolved_at": tx.now, "resolution_note": note}
    chosen = and_(AWAITING, among(tx, dead_letter.c.id, older))
    return tx.connection.execute(update(dead_letter).where(chosen).values(values)).rowcount


def _waiting_twice() -> Select[Any]:
    newer = dead_letter.alias("newer")
    waits = exists().where(
        newer.c.manifest_id == dead_letter.c.manifest_id,
        newer.c.id > dead_letter.c.id,
        newer.c.resolved_at.is_(None),
    )
    chosen = select(dead_letter.c.id).where(AWAITING, waits)
    return chosen.order_by(dead_letter.c.id).limit(PAGE)


def waiting_for_the_removed(tx: Transaction) -> list[str]:
    """Dead letters that wait although their manifest was removed."""
    rows = tx.connection.execute(_waiting_for_the_removed())
    return [f"dead letter {row.id} of {row.external_id}" for row in rows]


def acknowledge_the_removed(tx: Transaction) -> int:
    """Acknowledge them, so that retention can delete what is left of their manifests."""
    letters = list(tx.connection.execute(_waiting_for_the_removed()).scalars())
    return len(resolution.acknowledge(tx, letters, "the manifest was removed")) if letters else 0


def _waiting_for_the_removed() -> Select[Any]:
    chosen = select(dead_letter.c.id, manifest.c.external_id).join(manifest)
    waits = chosen.where(AWAITING, manifest.c.removed_at.is_not(None))
    return waits.order_by(dead_letter.c.id).limit(PAGE)


def unburied(tx: Transaction, grace: timedelta) -> list[str]:
    """Servers whose lease ended longer than *grace* ago, and whose row is still there."""
    rows = tx.connection.execute(select(server).where(_dead(tx, grace)).order_by(server.c.id))
    return [f"server {row.id}, silent since {row.renewed_at:%Y-%m-%d %H:%M:%S}" for row in rows]


def bury_all(tx: Transaction, grace: timedelta) -> int:
    """Delete their rows; what they ran is then nobody's and can be ended."""
    dead = locked_in_order(tx, server, _dead(tx, grace), wait=False)
    return len(tx.connection.execute(delete(server).where(dead).returning(server.c.id)).all())


def _dead(tx: Transaction, grace: timedelta) -> ColumnElement[bool]:
    return server.c.expires_at < tx.now - grace


def published_leases(tx: Transaction) -> dict[str, timedelta]:
    """The lease each living server renews for, to a tenth of a second."""
    rows = tx.connection.execute(select(server).where(server.c.expires_at > tx.now))
    return {
        row.id: timedelta(seconds=round((row.expires_at - row.renewed_at).total_seconds(), 1))
        for row in rows
    }


def overdue_for_retention(tx: Transaction, before: datetime) -> list[str]:
    """How many executions that finished before then should have been deleted, counted to a page."""
    old = select(execution_history.c.id).where(execution_history.c.finished_at < before, ~is_kept())
    found = tx.connection.execute(old.limit(PAGE)).scalars().all()
    if not found:
        return []
    oldest = select(func.min(execution_history.c.finished_at)).where(
        among(tx, execution_history.c.id, found)
    )
    moment: datetime = tx.connection.execute(oldest).scalar_one()
    number = f"{PAGE} or more" if len(found) == PAGE else str(len(found))
    return [f"{number} finished executions, from {moment:%Y-%m-%d %H:%M} on"]
