"""Edges of a declaration: parents found by external id, and no circles allowed."""

import json
from collections.abc import Collection, Iterable

from sqlalchemy import or_, select

from headway.domain.declaration import Declaration
from headway.domain.graph import Edge, check_acyclic
from headway.domain.manifest import Manifest
from headway.errors import ParentNotFound
from headway.store.bulk import chunks
from headway.store.edges import all_edges, fill_lost_parents, set_parents
from headway.store.tables import dependency, manifest
from headway.store.transaction import Transaction, among
from headway.store.wakes import Scope, leave_wakes

_ORPHANS = (
    select(manifest.c.id, manifest.c.declared)
    .join(dependency, dependency.c.child_id == manifest.c.id)
    .where(dependency.c.parent_id.is_(None), manifest.c.removed_at.is_(None))
)


def apply_edges(tx: Transaction, wanted: Declaration, changed: Collection[str]) -> None:
    """Make every declared manifest depend on what it names, wherever that was declared.

    *changed* are those whose rows were changed just now: only they can have edges too many, or be
    in another group than before. What is new and names no parents has no edges to look at.
    """
    concerned = (one for one in wanted.manifests if one.parents or one.external_id in changed)
    linked: set[int] = set()
    for chunk in chunks(concerned):
        ids = _ids(tx, {name for item in chunk for name in (item.external_id, *item.parents)})
        linked |= set_parents(tx, {ids[item.external_id]: _parent_ids(item, ids) for item in chunk})
    linked |= _relink(tx)
    if linked or _have_edges(tx, changed):
        edges, groups = all_edges(tx)
        check_acyclic(groups, [Edge(parent, child) for parent, child in edges])
    leave_wakes(tx, [(child, Scope.SELF) for child in sorted(linked)])


def _have_edges(tx: Transaction, external_ids: Iterable[str]) -> bool:
    for chunk in chunks(external_ids):
        ids = list(_ids(tx, chunk).values())
        ends = or_(among(tx, dependency.c.child_id, ids), among(tx, dependency.c.parent_id, ids))
        if tx.connection.execute(select(dependency.c.id).where(ends).limit(1)).first():
            return True
    return False


def _relink(tx: Transaction) -> set[int]:
    """Give children that lost a parent the new manifest under its external id, if there is one.

    The child may be another application's, which has no reason to declare anything again.
    """
    orphans = {row.id: json.loads(row.declared or "{}") for row in tx.connection.execute(_ORPHANS)}
    named = {child: declared.get("parents", []) for child, declared in orphans.items()}
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
