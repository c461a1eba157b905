"""Manifests: pages, one in detail, the graph."""

from collections.abc import Sequence

from headway.domain.paging import DEFAULT_LIMIT, Page, checked_limit, cursor_at, place_of
from headway.domain.views import Graph, ManifestDetail, ManifestFilter, ManifestOverview, Strip
from headway.errors import ManifestNotFound
from headway.history.limits import checked_nodes, checked_number
from headway.store.engine import Store
from headway.store.reading import execution_pages, graph, manifest_detail, manifests

EVERYTHING = ManifestFilter()


class Manifests:
    """Manifests as they stand.

    >>> History(store).manifests.page(ManifestFilter(search="load-")).items  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self,
        filters: ManifestFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Page[ManifestOverview]:
        """Manifests by name; those of one group, and dead-lettered ones, as they were declared."""
        place = place_of(cursor, str, int)
        after = None if place is None else (str(place[0]), int(str(place[1])))
        with self._store.reading() as tx:
            items, stopped = manifests.page(tx, filters, after, checked_limit(limit))
        return Page(tuple(items), cursor_at(*stopped) if stopped else None)

    def detail(self, external_id: str) -> ManifestDetail:
        """Everything about one manifest.

        Raises :class:`ManifestNotFound` if there is none of this name.
        """
        with self._store.reading() as tx:
            found = manifest_detail.detail(tx, external_id)
        if found is None:
            raise ManifestNotFound(external_id)
        return found

    def strips(self, ids: Sequence[int], last: int = 20) -> dict[int, tuple[Strip, ...]]:
        """The last finished runs of each of these manifests, oldest first."""
        with self._store.reading() as tx:
            return execution_pages.strips(tx, ids, checked_number("last", last, 50))

    def graph(self, group: str | None = None, around: str | None = None, limit: int = 500) -> Graph:
        """What runs after what: in one group, around one manifest, or among the first of all."""
        with self._store.reading() as tx:
            return graph.of_manifests(tx, group, around, checked_nodes(limit))

    def all(self) -> list[ManifestOverview]:
        """Every manifest, by name: for tests and small deployments."""
        with self._store.reading() as tx:
            return manifests.list_manifests(tx)
