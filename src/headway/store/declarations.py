"""Applying a declaration: groups and manifests upserted by name, only what changed is written.

Reads and writes manifest_group, manifest, manifest_state, wake and declaration, in the caller's
transaction under the apply lock.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from headway.domain.declaration import Declaration, declared_group, declared_manifest
from headway.domain.manifest import Group, Manifest
from headway.domain.schedule import schedule_to_fields
from headway.store.tables import declaration, manifest, manifest_group, manifest_state
from headway.store.transaction import Transaction, among
from headway.store.wakes import Scope, leave_wakes
from headway.store.work_queue import NO_LONGER_DECLARED, cancel_queued

CHUNK = 1000


@dataclass(frozen=True)
class Applied:
    """What applying a declaration changed."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0


def apply(tx: Transaction, wanted: Declaration, *, prune: bool = False) -> Applied:
    """Make the database say what *wanted* says; the same declaration twice writes nothing."""
    digest = wanted.digest()
    if _latest_digest(tx, wanted.application) == digest:
        # It may have been applied without pruning.
        removed = _remove_undeclared(tx, wanted) if prune else 0
        return Applied(unchanged=len(wanted.manifests), removed=removed)
    group_ids = _upsert_groups(tx, wanted)
    created = changed = 0
    for chunk in _chunks(wanted.manifests):
        new, altered = _upsert_manifests(tx, wanted.application, chunk, group_ids)
        created, changed = created + new, changed + altered
    removed = _remove_undeclared(tx, wanted) if prune else 0
    _remember(tx, wanted, digest)
    unchanged = len(wanted.manifests) - created - changed
    return Applied(created, changed, unchanged, removed)


def _latest_digest(tx: Transaction, application: str) -> str | None:
    latest = (
        select(declaration.c.digest)
        .where(declaration.c.application == application)
        .order_by(declaration.c.id.desc())
        .limit(1)
    )
    return tx.connection.execute(latest).scalar_one_or_none()


def _remember(tx: Transaction, wanted: Declaration, digest: str) -> None:
    tx.connection.execute(
        insert(declaration).values(
            application=wanted.application,
            digest=digest,
            manifests=len(wanted.manifests),
            applied_at=tx.now,
        )
    )


def _upsert_groups(tx: Transaction, wanted: Declaration) -> dict[str, int]:
    named = {item.group.name: item.group for item in wanted.manifests}
    groups: dict[str, Group] = {**named, **wanted.groups}
    found = {
        row.name: row
        for row in tx.connection.execute(
            select(manifest_group.c.id, manifest_group.c.name, manifest_group.c.declared).where(
                among(tx, manifest_group.c.name, groups)
            )
        )
    }
    for name, group in groups.items():
        text = declared_group(group) if name in wanted.groups else None
        if name not in found:
            _create_group(tx, group, text)
        elif text is not None and text != found[name].declared:
            _change_group(tx, found[name].id, group, text)
    ids = select(manifest_group.c.name, manifest_group.c.id)
    return {row.name: row.id for row in tx.connection.execute(ids)}


def _create_group(tx: Transaction, group: Group, text: str | None) -> None:
    tx.connection.execute(
        insert(manifest_group).values(
            **_group_values(group), declared=text, created_at=tx.now, updated_at=tx.now
        )
    )


def _change_group(tx: Transaction, group_id: int, group: Group, text: str) -> None:
    tx.connection.execute(
        update(manifest_group)
        .where(manifest_group.c.id == group_id)
        .values(**_group_values(group), declared=text, updated_at=tx.now)
    )
    leave_wakes(tx, [(group_id, Scope.GROUP)])


def _group_values(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "max_active_jobs": group.max_active_jobs,
        "priority": group.priority,
        "enabled": group.enabled,
    }


def _upsert_manifests(
    tx: Transaction, application: str, chunk: Sequence[Manifest], group_ids: dict[str, int]
) -> tuple[int, int]:
    found = {row.external_id: row for row in tx.connection.execute(_current(tx, chunk))}
    rows = [_row(tx, application, item, group_ids[item.group.name]) for item in chunk]
    new = [row for row in rows if row["external_id"] not in found]
    altered = [
        row | {"b_id": found[row["external_id"]].id}
        for row in rows
        if row["external_id"] in found and found[row["external_id"]].declared != row["declared"]
    ]
    _create_manifests(tx, new)
    _change_manifests(tx, altered)
    return len(new), len(altered)


def _current(tx: Transaction, chunk: Sequence[Manifest]) -> Any:
    return select(manifest.c.id, manifest.c.external_id, manifest.c.declared).where(
        manifest.c.removed_at.is_(None),
        among(tx, manifest.c.external_id, [item.external_id for item in chunk]),
    )


def _create_manifests(tx: Transaction, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    statement = insert(manifest).returning(manifest.c.id)
    created = [row | {"created_at": tx.now} for row in rows]
    ids = tx.connection.execute(statement, created).scalars()
    states = [{"manifest_id": manifest_id, "wake_at": tx.now} for manifest_id in ids]
    tx.connection.execute(insert(manifest_state), states)


def _change_manifests(tx: Transaction, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    columns: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "b_id"}
    statement = update(manifest).where(manifest.c.id == bindparam("b_id")).values(columns)
    tx.connection.execute(statement, rows)
    leave_wakes(tx, [(row["b_id"], Scope.SELF) for row in rows])


def _row(tx: Transaction, application: str, item: Manifest, group_id: int) -> dict[str, Any]:
    return {
        "external_id": item.external_id,
        "workflow": item.workflow,
        "input_type": item.input_type,
        "input": item.input,
        "group_id": group_id,
        **schedule_to_fields(item.schedule),
        "priority": item.priority,
        "max_retries": item.max_retries,
        "timeout_seconds": int(item.timeout.total_seconds()) if item.timeout else None,
        "enabled": item.enabled,
        "owner": application,
        "declared": declared_manifest(item),
        "updated_at": tx.now,
    }


def _remove_undeclared(tx: Transaction, wanted: Declaration) -> int:
    """Soft-remove this application's manifests that it no longer declares; history stays."""
    kept = {item.external_id for item in wanted.manifests}
    owned = select(manifest.c.id, manifest.c.external_id).where(
        manifest.c.owner == wanted.application, manifest.c.removed_at.is_(None)
    )
    gone = [row.id for row in tx.connection.execute(owned) if row.external_id not in kept]
    if gone:
        tx.connection.execute(
            update(manifest).where(among(tx, manifest.c.id, gone)).values(removed_at=tx.now)
        )
        cancel_queued(tx, gone, NO_LONGER_DECLARED)
    return len(gone)


def _chunks(items: Iterable[Manifest]) -> Iterator[list[Manifest]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk
