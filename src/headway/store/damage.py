"""Taking a protection away from a database, to see whether a chaos run notices."""

from sqlalchemy import text

from headway.store.transaction import Transaction


def drop_the_rule_of_one_queued_entry(tx: Transaction) -> None:
    """Without it, two managers at once queue an occurrence twice."""
    tx.connection.execute(text("DROP INDEX headway_work_queue_one_queued"))
