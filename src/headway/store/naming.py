"""The names there are, in order: for completing what somebody types, and for "did you mean"."""

from typing import Any

from sqlalchemy import ColumnElement, Select, select, true

from headway.store.tables import manifest, manifest_group
from headway.store.transaction import Transaction

Names = tuple[Any, ColumnElement[bool]]

EXTERNAL_IDS: Names = (manifest.c.external_id, manifest.c.removed_at.is_(None))
GROUPS: Names = (manifest_group.c.name, true())


def names_from(tx: Transaction, names: Names, start: str, limit: int) -> list[str]:
    """The first names in order that are not before *start*."""
    column, there = names
    return _read(tx, select(column).where(there, column >= start).order_by(column), limit)


def names_around(tx: Transaction, names: Names, name: str, each_side: int) -> list[str]:
    """The nearest names before and after *name* in order; of a few, all of them."""
    column, there = names
    before = select(column).where(there, column < name).order_by(column.desc())
    return _read(tx, before, each_side) + names_from(tx, names, name, each_side)


def _read(tx: Transaction, statement: Select[tuple[str]], limit: int) -> list[str]:
    return list(tx.connection.scalars(statement.limit(limit)))
