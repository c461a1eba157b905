"""Groups of a declaration: created when first named, changed only where the code's value moved."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select, update

from headway.domain.declaration import Declaration, declared_group
from headway.domain.manifest import Group
from headway.store.tables import manifest_group
from headway.store.transaction import Transaction, among, insert_or_ignore
from headway.store.versions import One, change
from headway.store.wakes import Scope, leave_wakes


def upsert_groups(tx: Transaction, wanted: Declaration) -> dict[str, int]:
    """Make the groups of *wanted* exist as declared; returns the id of each by name."""
    named = {item.group.name: item.group for item in wanted.manifests}
    groups: dict[str, Group] = {**named, **wanted.groups}
    found = {row.name: row for row in tx.connection.execute(_current(tx, groups))}
    texts = {name: declared_group(group) for name, group in wanted.groups.items()}
    _create(tx, [(groups[name], texts.get(name)) for name in sorted(groups.keys() - found.keys())])
    for name in sorted(texts.keys() & found.keys()):
        if texts[name] != found[name].declared:
            _change(tx, found[name], texts[name])
    return {row.name: row.id for row in tx.connection.execute(_current(tx, groups))}


def _current(tx: Transaction, groups: Mapping[str, Group]) -> Any:
    return select(manifest_group.c.id, manifest_group.c.name, manifest_group.c.declared).where(
        among(tx, manifest_group.c.name, groups)
    )


def _create(tx: Transaction, new: Sequence[tuple[Group, str | None]]) -> None:
    """In the order of names, and without those that somebody else has created meanwhile."""
    rows = [
        {**vars(group), "declared": text, "created_at": tx.now, "updated_at": tx.now}
        for group, text in new
    ]
    if rows:
        tx.connection.execute(insert_or_ignore(tx, manifest_group), rows)


def _change(tx: Transaction, known: Any, text: str) -> None:
    """Write what the code says differently than before; the rest may be an operator's."""
    before, after = json.loads(known.declared or "{}"), json.loads(text)
    moved = {name: value for name, value in after.items() if before.get(name, ...) != value}
    tx.connection.execute(
        update(manifest_group)
        .where(manifest_group.c.id == known.id)
        .values(**moved, declared=text, updated_at=tx.now)
    )
    leave_wakes(tx, [(known.id, Scope.GROUP)])


def change_group(
    tx: Transaction, name: str, values: Mapping[str, Any], expected: str | None = None
) -> bool:
    """Give a group other values than the code's, until the code's own change.

    Returns whether there is one of that name; raises if its version is not the one *expected*.
    """
    chosen = One(manifest_group, manifest_group.c.name == name, f"group {name!r}")
    key = change(tx, chosen, values, expected)
    if key is not None:
        leave_wakes(tx, [(key, Scope.GROUP)])
    return key is not None
