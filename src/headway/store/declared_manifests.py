"""Manifests of a declaration: created when first named, changed only where the code's word moved.

Rows are compared by the text kept beside them, and one that is the same is neither written nor
locked. Whoever changes several locks them in id order first, and creates in the order given.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, select, update

from headway.domain.declaration import Declaration, check_owner, declared_manifests
from headway.domain.manifest import Manifest
from headway.domain.progress import Progress, unseen
from headway.store.bulk import NewRow, chunks, create_manifests
from headway.store.manifest_rows import shared_columns
from headway.store.tables import manifest
from headway.store.transaction import Transaction, among
from headway.store.wakes import Scope, leave_wakes

Told = tuple[Manifest, str]
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Written:
    """How many manifests were created, which were changed, and which of those changed group."""

    created: int = 0
    changed: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()

    def __add__(self, other: "Written") -> "Written":
        return Written(
            self.created + other.created, self.changed | other.changed, self.moved | other.moved
        )


def upsert_manifests(
    tx: Transaction,
    wanted: Declaration,
    group_ids: Mapping[str, int],
    progress: Progress = unseen,
) -> Written:
    """Make the manifests of *wanted* exist as declared, in the groups with these ids."""
    written, done = Written(), 0
    for chunk in chunks(wanted.manifests):
        written += _Upsert(tx, wanted.application, group_ids).write(chunk)
        done += len(chunk)
        progress(done, len(wanted.manifests))
    return written


def check_owners(tx: Transaction, application: str, external_ids: Iterable[str]) -> None:
    """Refuse those of *external_ids* that another application has."""
    for chunk in chunks(external_ids):
        names = among(tx, manifest.c.external_id, chunk)
        for row in tx.connection.execute(_current(names)):
            check_owner(row.external_id, row.owner, application)


@dataclass(frozen=True)
class _Upsert:
    tx: Transaction
    application: str
    group_ids: Mapping[str, int]

    def write(self, chunk: Sequence[Manifest]) -> Written:
        names = among(self.tx, manifest.c.external_id, [item.external_id for item in chunk])
        found = {row.external_id: row for row in self.tx.connection.execute(_current(names))}
        new: list[Told] = []
        differing: dict[int, Told] = {}
        for item, text in zip(chunk, declared_manifests(chunk), strict=True):
            known = found.get(item.external_id)
            if known is None:
                new.append((item, text))
                continue
            check_owner(item.external_id, known.owner, self.application)
            if known.declared != text:
                differing[known.id] = item, text
        written = Written(self._create(new)) + self._change(differing)
        return written + self._again(new, list(differing.values()), written)

    def _again(self, new: list[Told], differing: list[Told], written: Written) -> Written:
        """What somebody else created or removed meanwhile is there, or gone, at the second look."""
        left = [item for item, _ in differing if item.external_id not in written.changed]
        if written.created < len(new):
            left += [item for item, _ in new]
        return self.write(left) if left else Written()

    def _create(self, new: Sequence[Told]) -> int:
        since = {"created_at": self.tx.now, "scheduled_since": self.tx.now}
        return create_manifests(self.tx, list(self._rows(new, since)))

    def _change(self, differing: Mapping[int, Told]) -> Written:
        if not differing:
            return Written()
        locked = _current(among(self.tx, manifest.c.id, differing)).order_by(manifest.c.id)
        known = self.tx.connection.execute(locked.with_for_update(key_share=True)).all()
        rows = [row.columns() for row in self._rows([differing[row.id] for row in known])]
        _change_rows(self.tx, list(zip(known, rows, strict=True)))
        moved = (
            before.external_id
            for before, after in zip(known, rows, strict=True)
            if before.group_id != after["group_id"]
        )
        return Written(0, frozenset(row.external_id for row in known), frozenset(moved))

    def _rows(self, told: Sequence[Told], more: Mapping[str, Any] = NOTHING) -> Iterator[NewRow]:
        """What is to be written; what a manifest has from the one before it is worked out once."""
        before: Manifest | None = None
        shared: Mapping[str, Any] = NOTHING
        for item, text in told:
            if before is None or not item.is_like(before):
                shared = {**self._shared(item), **more}
            before = item
            yield NewRow(shared, item.external_id, item.input, text)

    def _shared(self, item: Manifest) -> dict[str, Any]:
        return shared_columns(item) | {
            "group_id": self.group_ids[item.group.name],
            "owner": self.application,
            "updated_at": self.tx.now,
        }


def _current(chosen: ColumnElement[bool]) -> Select[Any]:
    columns = ("id", "external_id", "declared", "owner", "group_id")
    return select(*(manifest.c[name] for name in columns)).where(
        manifest.c.removed_at.is_(None), chosen
    )


def _change_rows(tx: Transaction, altered: Sequence[tuple[Any, dict[str, Any]]]) -> None:
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
