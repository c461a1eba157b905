"""Applying a declaration: groups and manifests upserted by name, only what changed is written.

Reads and writes manifest_group, manifest, manifest_state, dependency, wake and declaration, in the
caller's transaction under the apply lock. What the code said last time is kept beside each row, so
that a value an operator changed stays until the code's own value changes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update

from headway.domain.declaration import Declaration, declared_manifest
from headway.domain.manifest import Manifest
from headway.domain.plan import removes_too_much
from headway.errors import OwnedByAnother
from headway.store.bulk import create_manifests
from headway.store.declared_edges import apply_edges
from headway.store.declared_groups import upsert_groups
from headway.store.manifest_rows import definition_columns
from headway.store.removal import remove, undeclared
from headway.store.tables import declaration, manifest
from headway.store.transaction import Transaction, among
from headway.store.wakes import Scope, leave_wakes

CHUNK = 1000


@dataclass(frozen=True)
class Applied:
    """What applying a declaration changed; ``kept_back`` were to be removed, but too many.

    ``outdated``: nothing was applied, because a later declaration has replaced this one.
    """

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    kept_back: int = 0
    outdated: bool = False


@dataclass(frozen=True)
class Standing:
    """Where a declaration stands among those applied: the current one, an earlier one, or new."""

    digest: str
    current: bool
    outdated: bool


def apply(
    tx: Transaction, wanted: Declaration, *, allow_removal: bool = False, go_back: bool = False
) -> Applied:
    """Make the database say what *wanted* says; the same declaration twice writes nothing.

    Manifests this application declared before and no longer does are removed, unless that would be
    more than half of them and nobody has allowed it. A declaration that a later one has replaced
    is not applied: an old process that restarts during a deployment must not undo the new one.
    With *go_back* it is, and even the current one is compared row by row.
    """
    standing = standing_of(tx, wanted)
    if standing.outdated and not go_back:
        return Applied(outdated=True)
    created = changed = 0
    if not standing.current or go_back:
        group_ids = upsert_groups(tx, wanted)
        for chunk in _chunks(wanted.manifests):
            new, altered = _upsert_manifests(tx, wanted.application, chunk, group_ids)
            created, changed = created + new, changed + altered
    removed, kept_back = _remove_undeclared(tx, wanted, created, allow_removal)
    if not standing.current or go_back:
        apply_edges(tx, wanted)
    if not standing.current:
        _remember(tx, wanted, standing.digest)
    left = len(wanted.manifests) - created - changed
    return Applied(created, changed, left, removed, kept_back)


def upsert(tx: Transaction, wanted: Declaration, *, prune_batch: str | None = None) -> int:
    """Create or change what *wanted* names and leave the rest; returns how many were touched.

    With *prune_batch*, items of that batch that *wanted* does not name are removed.
    """
    group_ids = upsert_groups(tx, wanted)
    touched = 0
    for chunk in _chunks(wanted.manifests):
        touched += sum(_upsert_manifests(tx, wanted.application, chunk, group_ids))
    if prune_batch is not None:
        remove(tx, undeclared(tx, wanted, batch=prune_batch)[1])
    apply_edges(tx, wanted)
    return touched


def standing_of(tx: Transaction, wanted: Declaration) -> Standing:
    """Whether *wanted* is what was applied last, or was applied before that, or never."""
    digest = wanted.digest()
    of_application = declaration.c.application == wanted.application
    newest = select(func.max(declaration.c.id)).where(of_application).scalar_subquery()
    current = select(func.count()).where(declaration.c.id == newest, declaration.c.digest == digest)
    known = select(func.count()).where(of_application, declaration.c.digest == digest)
    is_current = bool(tx.connection.execute(current).scalar_one())
    is_known = bool(tx.connection.execute(known).scalar_one())
    return Standing(digest, is_current, is_known and not is_current)


def _remember(tx: Transaction, wanted: Declaration, digest: str) -> None:
    tx.connection.execute(
        insert(declaration).values(
            application=wanted.application,
            digest=digest,
            manifests=len(wanted.manifests),
            applied_at=tx.now,
        )
    )


def _remove_undeclared(
    tx: Transaction, wanted: Declaration, created: int, allow_removal: bool
) -> tuple[int, int]:
    """Half of what was there before counts: giving everything a new name removes everything."""
    owned, gone = undeclared(tx, wanted)
    if removes_too_much(len(gone), owned - created) and not allow_removal:
        return 0, len(gone)
    remove(tx, gone)
    return len(gone), 0


def _upsert_manifests(
    tx: Transaction, application: str, chunk: Sequence[Manifest], group_ids: Mapping[str, int]
) -> tuple[int, int]:
    found = {row.external_id: row for row in tx.connection.execute(_current(tx, chunk))}
    new, altered = [], []
    for item in chunk:
        row = _row(tx, application, item, group_ids[item.group.name])
        known = found.get(item.external_id)
        if known is None:
            new.append(row | {"created_at": tx.now, "scheduled_since": tx.now})
        elif known.declared != row["declared"]:
            _check_owner(known, application)
            altered.append((known, row))
    create_manifests(tx, new)
    _change_manifests(tx, altered)
    return len(new), len(altered)


def _check_owner(known: Any, application: str) -> None:
    """What code declares may be changed at run time, but never by another application."""
    mine, theirs = (owner.partition(":")[0] for owner in (application, known.owner))
    if mine != theirs:
        raise OwnedByAnother(known.external_id, theirs)


def _current(tx: Transaction, chunk: Sequence[Manifest]) -> Any:
    columns = (manifest.c.id, manifest.c.external_id, manifest.c.declared, manifest.c.owner)
    return select(*columns).where(
        manifest.c.removed_at.is_(None),
        among(tx, manifest.c.external_id, [item.external_id for item in chunk]),
    )


def _change_manifests(tx: Transaction, altered: Sequence[tuple[Any, dict[str, Any]]]) -> None:
    by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for known, row in altered:
        values = _changed_values(tx, json.loads(known.declared or "{}"), row)
        by_columns.setdefault(tuple(values), []).append(values | {"b_id": known.id})
    for columns, rows in by_columns.items():
        values = {name: bindparam(name) for name in columns}
        statement = update(manifest).where(manifest.c.id == bindparam("b_id")).values(values)
        tx.connection.execute(statement, rows)
    ids = [known.id for known, _ in altered]
    leave_wakes(tx, [(key, scope) for key in ids for scope in (Scope.SELF, Scope.CHILDREN)])


def _changed_values(
    tx: Transaction, before: Mapping[str, Any], row: dict[str, Any]
) -> dict[str, Any]:
    """Everything the code says, but an operator's switch stays while the code's does not move.

    A new due time counts anew from now, and sets a once-manifest going again that was done.
    """
    after = json.loads(row["declared"])
    rescheduled = before.get("schedule") != after["schedule"]
    values = dict(row)
    if ":" in row["owner"]:
        del values["owner"]  # what code declares stays the code's, whoever changes it at run time
    if before.get("enabled") == after["enabled"] and not (rescheduled and after["kind"] == "once"):
        del values["enabled"]
    return values | ({"scheduled_since": tx.now} if rescheduled else {})


def _row(tx: Transaction, application: str, item: Manifest, group_id: int) -> dict[str, Any]:
    return definition_columns(item) | {
        "group_id": group_id,
        "owner": application,
        "declared": declared_manifest(item),
        "updated_at": tx.now,
    }


def _chunks(items: Iterable[Manifest]) -> Iterator[list[Manifest]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk
