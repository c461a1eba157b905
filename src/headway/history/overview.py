"""How the whole deployment stands."""

from datetime import timedelta

from headway.domain.paging import checked_limit
from headway.domain.text import shown
from headway.domain.views import Attention, NextRun, Summary, Throughput, Waiting
from headway.errors import DefinitionError
from headway.store.engine import Store
from headway.store.reading import attention, overview, throughput

LONGEST_CHART = timedelta(days=7)


class Overview:
    """What the home page shows.

    >>> History(store).overview.summary().running  # doctest: +SKIP
    3
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def summary(self) -> Summary:
        """What waits and runs now, and how it went lately."""
        with self._store.reading() as tx:
            return overview.summary(tx)

    def waiting(self) -> Waiting:
        """What every page says beside its links."""
        with self._store.reading() as tx:
            return overview.waiting(tx)

    def throughput(self, span: timedelta = timedelta(hours=1)) -> Throughput:
        """What ended during the last *span*: by the minute up to three hours, else by the hour."""
        if not isinstance(span, timedelta) or not timedelta(minutes=1) <= span <= LONGEST_CHART:
            raise DefinitionError(
                f"span = {shown(span)}: must be a timedelta from 1 minute to 7 days; "
                "for example timedelta(hours=1)"
            )
        with self._store.reading() as tx:
            return throughput.throughput(tx, span)

    def next_runs(self, limit: int = 10) -> list[NextRun]:
        """What runs next by itself, soonest first."""
        with self._store.reading() as tx:
            return overview.next_runs(tx, checked_limit(limit))

    def attention(self, limit: int = 10) -> list[Attention]:
        """What a person should look at, the gravest first, at most *limit* of each kind."""
        with self._store.reading() as tx:
            return attention.attention(tx, checked_limit(limit))
