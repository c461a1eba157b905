"""Ids must rise: an execution's id is its epoch, and no id of an entry or execution comes again.

They come from a sequence, which a restored backup or a person may have set back.
"""

from dataclasses import dataclass

from sqlalchemy import Column, func, select, text

from headway.store.tables import execution, execution_history, work_queue
from headway.store.transaction import Transaction

USED: dict[str, tuple[Column[int], ...]] = {
    execution.name: (execution.c.id, execution_history.c.id),
    work_queue.name: (work_queue.c.id, execution.c.entry_id, execution_history.c.entry_id),
}
LAST_ON_POSTGRESQL = text(
    "SELECT pg_sequence_last_value(CAST(pg_get_serial_sequence(:table, 'id') AS regclass))"
)
LAST_ON_SQLITE = text("SELECT seq FROM sqlite_sequence WHERE name = :table")
RAISE_ON_POSTGRESQL = text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :used)")
RAISE_ON_SQLITE = text("UPDATE sqlite_sequence SET seq = :used WHERE name = :table")
BEGIN_ON_SQLITE = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :used)")


@dataclass(frozen=True)
class _Behind:
    table: str
    last: int
    used: int


def ids_behind(tx: Transaction) -> list[str]:
    """Tables whose next id is one that was used before."""
    return [f"{one.table}: last id {one.last}, used {one.used}" for one in _behind(tx)]


def raise_ids(tx: Transaction) -> int:
    """Let the next ids follow those that were used."""
    behind = _behind(tx)
    for one in behind:
        values = {"table": one.table, "used": one.used}
        if tx.on_postgresql:
            tx.connection.execute(RAISE_ON_POSTGRESQL, values)
        elif not tx.connection.execute(RAISE_ON_SQLITE, values).rowcount:
            tx.connection.execute(BEGIN_ON_SQLITE, values)
    return len(behind)


def _behind(tx: Transaction) -> list[_Behind]:
    # The rows first: an id that is drawn between the two statements is then not yet among them.
    used = {table: _highest(tx, columns) for table, columns in USED.items()}
    each = [_Behind(table, _last(tx, table), highest) for table, highest in used.items()]
    return [one for one in each if one.last < one.used]


def _highest(tx: Transaction, columns: tuple[Column[int], ...]) -> int:
    found = [tx.connection.execute(select(func.max(column))).scalar_one() for column in columns]
    return max(number or 0 for number in found)


def _last(tx: Transaction, table: str) -> int:
    statement = LAST_ON_POSTGRESQL if tx.on_postgresql else LAST_ON_SQLITE
    return int(tx.connection.execute(statement, {"table": table}).scalar() or 0)
