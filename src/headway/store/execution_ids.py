"""Where executions have their ids from: one identity that rises and never comes back.

An id is the epoch of its attempt and names it in the history for good. Only somebody who edits
rows or the identity itself can make one come up twice.
"""

from sqlalchemy import text

from headway.store.tables import execution, execution_history
from headway.store.transaction import Transaction

_HIGHEST = (
    f"(SELECT COALESCE(MAX(id), 0) FROM {execution_history.name}), "
    f"(SELECT COALESCE(MAX(id), 0) FROM {execution.name})"
)
_SEQUENCE = f"pg_get_serial_sequence('{execution.name}', 'id')"


def reserve_on_sqlite(tx: Transaction, count: int) -> int:
    """The first of *count* ids that no execution will have."""
    name = {"name": execution.name, "count": count}
    raised = text("UPDATE sqlite_sequence SET seq = seq + :count WHERE name = :name")
    if not tx.connection.execute(raised, name).rowcount:
        begun = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :count)")
        tx.connection.execute(begun, name)
    last = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
    return int(tx.connection.execute(last, name).scalar_one()) - count + 1


def reserve_unused(tx: Transaction, count: int) -> range:
    """So many ids above every one there is, wherever the identity was set to."""
    if tx.on_postgresql:
        above = text(
            f"SELECT setval({_SEQUENCE}, GREATEST({_HIGHEST}, nextval({_SEQUENCE})) + :count)"
        )
        last = int(tx.connection.execute(above, {"count": count}).scalar_one())
        return range(last - count + 1, last + 1)
    first = reserve_on_sqlite(tx, count)
    above = text(
        f"UPDATE sqlite_sequence SET seq = MAX({_HIGHEST}, :first) + :count WHERE name = :name "
        "RETURNING seq"
    )
    given = {"first": first, "count": count, "name": execution.name}
    last = int(tx.connection.execute(above, given).scalar_one())
    return range(last - count + 1, last + 1)
