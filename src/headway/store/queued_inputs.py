"""What waits in the queue for the manifests of one application, with its input."""

from sqlalchemy import select

from headway.domain.work_queue import QueuedInput
from headway.store.eligibility import QUEUED
from headway.store.tables import manifest, work_queue
from headway.store.transaction import Transaction

MOST_READ = 10_000


def of_application(tx: Transaction, application: str) -> list[QueuedInput]:
    """The oldest :data:`MOST_READ` queued entries; those of removed manifests are left out."""
    statement = (
        select(work_queue.c.id, manifest.c.external_id, work_queue.c.workflow, work_queue.c.input)
        .select_from(work_queue.join(manifest, manifest.c.id == work_queue.c.manifest_id))
        .where(QUEUED, manifest.c.owner == application, manifest.c.removed_at.is_(None))
        .order_by(work_queue.c.id)
        .limit(MOST_READ)
    )
    return [QueuedInput(*row) for row in tx.connection.execute(statement)]
