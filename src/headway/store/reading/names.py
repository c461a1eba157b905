"""From the names people use to ids."""

from sqlalchemy import select

from headway.store.tables import manifest, manifest_group
from headway.store.transaction import Transaction


def manifest_named(tx: Transaction, external_id: str) -> int | None:
    """The id of a manifest that is not removed."""
    statement = select(manifest.c.id).where(
        manifest.c.external_id == external_id, manifest.c.removed_at.is_(None)
    )
    return tx.connection.execute(statement).scalar_one_or_none()


def group_named(tx: Transaction, name: str) -> int | None:
    """The id of a group."""
    statement = select(manifest_group.c.id).where(manifest_group.c.name == name)
    return tx.connection.execute(statement).scalar_one_or_none()
