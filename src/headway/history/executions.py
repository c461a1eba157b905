"""Executions, live and finished: pages, one in detail, the timeline."""

from collections.abc import Collection
from datetime import datetime

from headway.domain.execution import Execution, ExecutionState
from headway.domain.paging import DEFAULT_LIMIT, Page, checked_limit, cursor_at, numbers_of
from headway.domain.text import shown
from headway.domain.views import ExecutionDetail, ExecutionFilter, ExecutionOverview, Timeline
from headway.errors import DefinitionError, ExecutionNotFound
from headway.history.limits import MOST_BARS, checked_number
from headway.store.engine import Store
from headway.store.reading import execution_pages, executions, timeline

EVERYTHING = ExecutionFilter()


class Executions:
    """What runs and what has run.

    >>> History(store).executions.page(ExecutionFilter(manifest="load-users"))  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self,
        filters: ExecutionFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Page[ExecutionOverview]:
        """Executions, newest first."""
        place = numbers_of(cursor, 1)
        before = None if place is None else place[0]
        with self._store.reading() as tx:
            items, stopped = execution_pages.page(tx, filters, before, checked_limit(limit))
        return Page(tuple(items), cursor_at(stopped) if stopped else None)

    def detail(self, execution_id: int) -> ExecutionDetail:
        """Everything about one; raises :class:`ExecutionNotFound` if there is none of this id."""
        with self._store.reading() as tx:
            found = executions.detail(tx, execution_id)
        if found is None:
            raise ExecutionNotFound(execution_id)
        return found

    def these(self, ids: Collection[int]) -> dict[int, ExecutionOverview]:
        """Those of *ids* that are kept."""
        with self._store.reading() as tx:
            found = executions.overviews(tx, sorted(set(ids)))
        return {one.id: one for one in found}

    def timeline(
        self, start: datetime, end: datetime, group: str | None = None, limit: int = 500
    ) -> Timeline:
        """What ran between two moments, by start; of more than *limit* the newest."""
        if not start < end:
            raise DefinitionError(
                f"start = {shown(start)}: must be before end = {shown(end)}; "
                "for example an hour before"
            )
        with self._store.reading() as tx:
            most = checked_number("limit", limit, MOST_BARS)
            return timeline.timeline(tx, start, end, group, most)

    def began(self) -> datetime | None:
        """When the first execution that is kept was dispatched; None if there is none."""
        with self._store.reading() as tx:
            return timeline.first_dispatch(tx)

    def all(
        self,
        external_id: str | None = None,
        states: Collection[ExecutionState] = (),
        limit: int | None = None,
    ) -> list[Execution]:
        """Executions, oldest first, with *limit* the newest: for tests and small deployments."""
        with self._store.reading() as tx:
            return executions.list_executions(
                tx, external_id=external_id, states=states, limit=limit
            )
