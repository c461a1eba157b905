"""Taking a protection away from a database, to see whether a chaos run notices."""

from collections.abc import Iterable

from sqlalchemy import delete, insert, text

from headway.store.tables import execution_history
from headway.store.transaction import Transaction


def drop_the_rule_of_one_queued_entry(tx: Transaction) -> None:
    """Without it, two managers at once queue an occurrence twice."""
    tx.connection.execute(text("DROP INDEX headway_work_queue_one_queued"))


def believe_the_lost(tx: Transaction, execution_ids: Iterable[int]) -> None:
    """Write down as completed what was given up: its entry has been started again meanwhile."""
    history = execution_history
    gone = delete(history).where(history.c.id.in_(execution_ids), history.c.state == "failed")
    for row in tx.connection.execute(gone.returning(*history.c)).all():
        failure = {one.name: None for one in history.c if one.name.startswith("failure_")}
        believed = {**row._mapping, **failure, "state": "completed", "finished_at": tx.now}
        tx.connection.execute(insert(history), believed)
