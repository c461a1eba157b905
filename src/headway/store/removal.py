"""Removing manifests softly: history stays, the external id is free again, nothing else breaks."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select, update

from headway.domain.declaration import Declaration
from headway.store import dead_letters
from headway.store.bulk import streamed
from headway.store.edges import children_of
from headway.store.tables import dependency, manifest
from headway.store.transaction import Transaction, among
from headway.store.wakes import Scope, leave_wakes
from headway.store.work_queue import NO_LONGER_DECLARED, cancel_queued


@dataclass(frozen=True)
class Owned:
    """What an owner has beside what it declares: all of it, and where the two differ."""

    count: int
    undeclared: list[int]
    missing: set[str]


def owned_by(tx: Transaction, wanted: Declaration, batch: str | None = None) -> Owned:
    """The manifests of this owner (in *batch*), compared by external id with those of *wanted*."""
    owned = select(manifest.c.external_id, manifest.c.id).where(
        manifest.c.owner == wanted.application, manifest.c.removed_at.is_(None)
    )
    if batch is not None:
        owned = owned.where(manifest.c.batch == batch)
    missing = {item.external_id for item in wanted.manifests}
    count, undeclared = 0, []
    for name, key in streamed(tx, owned):
        count += 1
        if name in missing:
            missing.remove(name)
        else:
            undeclared.append(key)
    return Owned(count, sorted(undeclared), missing)


def remove(tx: Transaction, manifest_ids: Sequence[int], reason: str = NO_LONGER_DECLARED) -> None:
    """Take manifests out of service: their entries end, their dead letters are resolved with the
    *reason*, their children wait for them no more."""
    if not manifest_ids:
        return
    # By name, for no edge leads from the removed to their children afterwards.
    leave_wakes(tx, [(child, Scope.SELF) for child in children_of(tx, manifest_ids)])
    tx.connection.execute(
        update(manifest).where(among(tx, manifest.c.id, manifest_ids)).values(removed_at=tx.now)
    )
    # Letters before entries, in the order in which resolving a letter locks them.
    dead_letters.resolve_of_removed(tx, manifest_ids, reason)
    cancel_queued(tx, manifest_ids, reason)
    tx.connection.execute(delete(dependency).where(among(tx, dependency.c.child_id, manifest_ids)))
    tx.connection.execute(
        update(dependency)
        .where(among(tx, dependency.c.parent_id, manifest_ids))
        .values(parent_id=None)
    )
