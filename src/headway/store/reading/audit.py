"""The audit trail as its page shows it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import select

from headway.domain.views import AuditFilter, AuditRecord
from headway.store.reading.bounded import search
from headway.store.tables import audit
from headway.store.transaction import Transaction


def page(
    tx: Transaction, wanted: AuditFilter, before: int | None, limit: int
) -> tuple[list[AuditRecord], int | None]:
    """The newest records below the id *before*, and the id to go on from."""
    statement = select(audit).order_by(audit.c.id.desc())
    if before is not None:
        statement = statement.where(audit.c.id < before)
    if wanted.subject is not None:
        statement = statement.where(audit.c.subject == wanted.subject)
    found = search(tx, statement, _matches(wanted), limit)
    records = [AuditRecord(**row._mapping) for row in found.rows]
    if found.stopped_at is None or _too_early(wanted, found.stopped_at):
        return records, None
    return records, found.stopped_at.id


def _too_early(wanted: AuditFilter, row: Any) -> bool:
    return wanted.since is not None and bool(row.at < wanted.since)


def _matches(wanted: AuditFilter) -> Callable[[Any], bool] | None:
    if wanted.actor is None and wanted.action is None and wanted.since is None:
        return None
    return lambda row: (
        wanted.actor in (None, row.actor)
        and wanted.action in (None, row.action)
        and (wanted.since is None or row.at >= wanted.since)
    )
