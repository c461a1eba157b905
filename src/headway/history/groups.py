"""Groups: pages, one in detail, the graph."""

from headway.domain.paging import DEFAULT_LIMIT, Page, checked_limit, cursor_at, place_of
from headway.domain.views import Graph, GroupDetail, GroupFilter, GroupOverview
from headway.errors import GroupNotFound
from headway.history.limits import checked_nodes
from headway.store.engine import Store
from headway.store.reading import graph, groups

EVERYTHING = GroupFilter()


class Groups:
    """Groups and how much of what they hold.

    >>> History(store).groups.detail("etl").overview.active  # doctest: +SKIP
    2
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self,
        filters: GroupFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Page[GroupOverview]:
        """Groups by name, each with its counts."""
        place = place_of(cursor, str)
        with self._store.reading() as tx:
            after = None if place is None else str(place[0])
            items, stopped = groups.page(tx, filters, after, checked_limit(limit))
        return Page(tuple(items), cursor_at(stopped) if stopped else None)

    def detail(self, name: str) -> GroupDetail:
        """Everything about one group; raises :class:`GroupNotFound` if there is none."""
        with self._store.reading() as tx:
            found = groups.detail(tx, name)
        if found is None:
            raise GroupNotFound(name)
        return found

    def graph(self, around: str | None = None, limit: int = 500) -> Graph:
        """Which groups run after which: the first by name, or those *around* one."""
        with self._store.reading() as tx:
            return graph.of_groups(tx, around, checked_nodes(limit))

    def all(self) -> list[GroupOverview]:
        """Every group, by name: for tests and small deployments."""
        with self._store.reading() as tx:
            return groups.list_groups(tx)
