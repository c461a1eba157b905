"""Edges of a declaration: parents found by external id, and no circles allowed."""

import json
from collections.abc import Iterable, Mapping

from sqlalchemy import select

from headway.domain.declaration import Declaration
from headway.domain.manifest import Manifest
from headway.errors import ParentNotFound
from headway.store.bulk import chunks
from headway.store.circles import check_circles_through
from headway.store.declared_manifests import Written
from headway.store.edges import fill_lost_parents, set_parents
from headway.store.locks import Lock, hold
from headway.store.tables import dependency, manifest, manifest_group
from headway.store.transaction import Transaction, among
from headway.store.wakes import Scope, leave_wakes

_ORPHANS = (
    select(manifest.c.id, manifest.c.declared)
    .join(dependency, dependency.c.child_id == manifest.c.id)
    .where(dependency.c.parent_id.is_(None), manifest.c.removed_at.is_(None))
)


def may_close_a_circle(tx: Transaction, wanted: Declaration) -> bool:
    """Whether *wanted* names parents, is waited for by children, or moves a manifest elsewhere."""
    if any(item.parents for item in wanted.manifests):
        return True
    groups = {item.external_id: item.group.name for item in wanted.manifests}
    if any(not groups.keys().isdisjoint(names) for names in _lost_parents(tx).values()):
        return True
    return any(_moves(tx, {name: groups[name] for name in chunk}) for chunk in chunks(groups))


def _moves(tx: Transaction, groups: Mapping[str, str]) -> bool:
    current = (
        select(manifest.c.external_id, manifest_group.c.name)
        .join(manifest_group)
        .where(manifest.c.removed_at.is_(None), among(tx, manifest.c.external_id, groups))
    )
    return any(groups[name] != group for name, group in tx.connection.execute(current))


def apply_edges(tx: Transaction, wanted: Declaration, written: Written) -> None:
    """Make every declared manifest depend on what it names, wherever that was declared.

    Only what was changed just now can have edges too many; what is new and names no parents has
    no edges to look at. The lock comes before the look for circles: of two who would close one
    together, the second sees what the first has written.
    """
    concerned = (
        one for one in wanted.manifests if one.parents or one.external_id in written.changed
    )
    linked: set[int] = set()
    for chunk in chunks(concerned):
        ids = _ids(tx, {name for item in chunk for name in (item.external_id, *item.parents)})
        linked |= set_parents(tx, {ids[item.external_id]: _parent_ids(item, ids) for item in chunk})
    linked |= _relink(tx)
    if linked or written.moved:
        hold(tx, Lock.APPLY)
        check_circles_through(tx, {*linked, *_ids(tx, written.moved).values()})
    leave_wakes(tx, [(child, Scope.SELF) for child in sorted(linked)])


def _lost_parents(tx: Transaction) -> dict[int, list[str]]:
    """The parents named by each child that has lost one."""
    orphans = {row.id: json.loads(row.declared or "{}") for row in tx.connection.execute(_ORPHANS)}
    return {child: declared.get("parents", []) for child, declared in orphans.items()}


def _relink(tx: Transaction) -> set[int]:
    """Give children that lost a parent the new manifest under its external id, if there is one.

    The child may be another application's, which has no reason to declare anything again.
    """
    named = _lost_parents(tx)
    ids = _ids(tx, {name for parents in named.values() for name in parents})
    return fill_lost_parents(
        tx, {child: {ids[one] for one in parents if one in ids} for child, parents in named.items()}
    )


def _parent_ids(item: Manifest, ids: dict[str, int]) -> frozenset[int]:
    for parent in item.parents:
        if parent not in ids:
            raise ParentNotFound(item.external_id, parent)
    return frozenset(ids[parent] for parent in item.parents)


def _ids(tx: Transaction, external_ids: Iterable[str]) -> dict[str, int]:
    statement = select(manifest.c.external_id, manifest.c.id).where(
        manifest.c.removed_at.is_(None), among(tx, manifest.c.external_id, external_ids)
    )
    return {row.external_id: row.id for row in tx.connection.execute(statement)}
