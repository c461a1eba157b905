"""Who asked this deployment for what, and how it was answered: a bounded record."""

from sqlalchemy import delete, insert

from headway.store.tables import audit
from headway.store.transaction import Transaction, word

QUERIES_KEPT = 10_000
FORGOTTEN_AT_ONCE = 100
QUERY = "membrane.query"


def note_query(tx: Transaction, source: str, subject: str, detail: str) -> None:
    """A peer has asked about *subject*, and was answered with *detail*.

    The ten thousand newest rows stay, so that no peer can fill the disk by asking.
    """
    row = {"at": tx.now, "actor": source, "action": QUERY, "subject": subject, "detail": detail}
    noted = tx.connection.execute(insert(audit).values(row).returning(audit.c.id)).scalar_one()
    oldest = noted - QUERIES_KEPT
    tx.connection.execute(
        delete(audit).where(
            audit.c.id.between(oldest - FORGOTTEN_AT_ONCE, oldest), audit.c.action == word(QUERY)
        )
    )
