"""The audit trail."""

from headway.domain.paging import DEFAULT_LIMIT, Page, checked_limit, cursor_at, numbers_of
from headway.domain.views import AuditFilter, AuditRecord
from headway.store.engine import Store
from headway.store.reading import audit

EVERYTHING = AuditFilter()


class AuditTrail:
    """Who did what.

    >>> History(store).audit.page(AuditFilter(actor="ops")).items  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self,
        filters: AuditFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Page[AuditRecord]:
        """Records, newest first."""
        place = numbers_of(cursor, 1)
        before = None if place is None else place[0]
        with self._store.reading() as tx:
            items, stopped = audit.page(tx, filters, before, checked_limit(limit))
        return Page(tuple(items), cursor_at(stopped) if stopped else None)
