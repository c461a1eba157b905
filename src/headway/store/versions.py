"""Changing a row only if it is still as it was when somebody looked at it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Table, select, update

from headway.domain.versions import next_moment, version_of
from headway.errors import ChangedMeanwhile
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class One:
    """The one row to change, and what people call it."""

    table: Table
    chosen: ColumnElement[bool]
    name: str


def change(
    tx: Transaction, one: One, values: Mapping[str, Any], expected: str | None
) -> int | None:
    """Give the row other values and a later version; returns its id, if there is one.

    Locked in a statement of its own before it is compared: of two with the same expectation the
    second sees what the first has written.
    """
    columns = one.table.c
    looked_at = select(columns.id, columns.updated_at).where(one.chosen)
    row = tx.connection.execute(looked_at.with_for_update(key_share=True)).one_or_none()
    if row is None:
        return None
    version = version_of(row.updated_at)
    if expected is not None and expected != version:
        raise ChangedMeanwhile(one.name, version)
    moment = next_moment(row.updated_at, tx.now)
    chosen = columns.id == row.id
    tx.connection.execute(update(one.table).where(chosen).values(**values, updated_at=moment))
    return int(row.id)
