"""What applying a declaration would do: reads what applying would write, and writes nothing.

Reads manifest, manifest_state, manifest_group, dependency, declaration, work_queue and execution.
It refuses what applying would refuse: foreign external ids, unknown parents, circles.
"""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Table, func, or_, select

from headway.domain.declaration import Declaration
from headway.domain.graph import Edge, check_acyclic
from headway.domain.plan import Known, KnownGroup, KnownManifest, Plan, compare
from headway.errors import ParentNotFound
from headway.store.declarations import standing_of
from headway.store.edges import all_edges
from headway.store.eligibility import QUEUED
from headway.store.tables import (
    dependency,
    execution,
    manifest,
    manifest_group,
    manifest_state,
    work_queue,
)
from headway.store.transaction import Transaction, among


def plan(tx: Transaction, wanted: Declaration) -> Plan:
    """What applying *wanted* would create, change and remove, and what that means for its work."""
    known = Known(
        _manifests(tx, wanted), _groups(tx, wanted), outdated=standing_of(tx, wanted).outdated
    )
    found = compare(wanted, known)
    if found.has_changes:
        _check_edges(tx, wanted, {change.external_id for change in found.removed})
    concerned = found.concerned()
    return found.with_work(
        _counted(tx, work_queue, concerned, QUEUED), _counted(tx, execution, concerned)
    )


def _concerned(tx: Transaction, wanted: Declaration) -> ColumnElement[bool]:
    """What this application owns, and whoever has the external ids it wants."""
    names = [item.external_id for item in wanted.manifests]
    return or_(manifest.c.owner == wanted.application, among(tx, manifest.c.external_id, names))


def _manifests(tx: Transaction, wanted: Declaration) -> dict[str, KnownManifest]:
    parents = _parents(tx, wanted)
    statement = (
        select(
            manifest.c.id,
            manifest.c.external_id,
            manifest.c.declared,
            manifest.c.owner,
            manifest.c.enabled,
            manifest_state.c.last_success_at,
        )
        .select_from(manifest.join(manifest_state))
        .where(manifest.c.removed_at.is_(None), _concerned(tx, wanted))
    )
    return {
        row.external_id: KnownManifest(
            row.declared,
            row.owner,
            row.enabled,
            tuple(parents.get(row.id, ())),
            row.last_success_at is not None,
        )
        for row in tx.connection.execute(statement)
    }


def _parents(tx: Transaction, wanted: Declaration) -> dict[int, list[str | None]]:
    above = manifest.alias("above")
    statement = (
        select(dependency.c.child_id, above.c.external_id)
        .select_from(
            dependency.join(manifest, manifest.c.id == dependency.c.child_id).outerjoin(
                above, above.c.id == dependency.c.parent_id
            )
        )
        .where(manifest.c.removed_at.is_(None), _concerned(tx, wanted))
    )
    found: dict[int, list[str | None]] = {}
    for child_id, parent in tx.connection.execute(statement):
        found.setdefault(child_id, []).append(parent)
    return found


def _groups(tx: Transaction, wanted: Declaration) -> dict[str, KnownGroup]:
    statement = select(manifest_group).where(among(tx, manifest_group.c.name, wanted.groups))
    return {
        row.name: KnownGroup(row.declared, row.max_active_jobs, row.priority, row.enabled)
        for row in tx.connection.execute(statement)
    }


def _counted(
    tx: Transaction, work: Table, external_ids: Iterable[str], *only: ColumnElement[bool]
) -> dict[str, int]:
    """How many rows of *work* each of these manifests has."""
    statement = (
        select(manifest.c.external_id, func.count())
        .select_from(manifest.join(work, work.c.manifest_id == manifest.c.id))
        .where(
            manifest.c.removed_at.is_(None), among(tx, manifest.c.external_id, external_ids), *only
        )
        .group_by(manifest.c.external_id)
    )
    return {external_id: number for external_id, number in tx.connection.execute(statement)}


def _check_edges(tx: Transaction, wanted: Declaration, removed: set[str]) -> None:
    """Refuse parents that will not be there, and circles with what others have declared."""
    declared = {item.external_id: item for item in wanted.manifests}
    named = [Edge(parent, key) for key, item in declared.items() for parent in item.parents]
    elsewhere = _groups_of(tx, {edge.parent for edge in named} - declared.keys())
    for parent, child in named:
        if parent not in declared and (parent not in elsewhere or parent in removed):
            raise ParentNotFound(child, parent)
    edges, groups = all_edges(tx)
    others = [
        Edge(parent, child)
        for parent, child in edges
        if child not in declared and not {parent, child} & removed
    ]
    groups |= elsewhere | {key: item.group.name for key, item in declared.items()}
    check_acyclic(groups, [*others, *named])


def _groups_of(tx: Transaction, external_ids: Iterable[str]) -> dict[str, str]:
    """The group of each of these manifests that exists."""
    statement = (
        select(manifest.c.external_id, manifest_group.c.name)
        .select_from(manifest.join(manifest_group))
        .where(manifest.c.removed_at.is_(None), among(tx, manifest.c.external_id, external_ids))
    )
    return {external_id: group for external_id, group in tx.connection.execute(statement)}
