"""The work queue."""

from headway.domain.paging import (
    DEFAULT_LIMIT,
    Page,
    checked_limit,
    cursor_at,
    microseconds,
    moment_at,
    numbers_of,
)
from headway.domain.views import EntryOverview, QueuedEntry, QueueFilter
from headway.errors import EntryNotFound
from headway.store.engine import Store
from headway.store.reading import queue, queue_pages
from headway.store.reading.queue_lanes import Place

EVERYTHING = QueueFilter()


class Queue:
    """What waits to be dispatched.

    >>> [entry.external_id for entry in History(store).queue.page().items]  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self,
        filters: QueueFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Page[EntryOverview]:
        """What waits, in the order of dispatch; what waits for a later time comes last."""
        after = _place(cursor)
        with self._store.reading() as tx:
            items, stopped = queue_pages.page(tx, filters, after, checked_limit(limit))
        return Page(tuple(items), _cursor(stopped) if stopped else None)

    def detail(self, entry_id: int) -> QueuedEntry:
        """One entry with its input; raises :class:`EntryNotFound` if it does not wait."""
        with self._store.reading() as tx:
            found = queue.find(tx, entry_id)
        if found is None:
            raise EntryNotFound(entry_id)
        return found

    def all(self, limit: int | None = None) -> list[QueuedEntry]:
        """What waits, oldest first: for tests and small deployments."""
        with self._store.reading() as tx:
            return queue.list_queued(tx, limit)


def _cursor(place: Place) -> str:
    moment = microseconds(place.moment)
    return cursor_at(int(place.later), place.group_priority, place.priority, moment, place.id)


def _place(cursor: str | None) -> Place | None:
    numbers = numbers_of(cursor, 5)
    if numbers is None:
        return None
    later, group_priority, priority, moment, key = numbers
    return Place(bool(later), group_priority, priority, moment_at(moment), key)
