"""Counting what has ended, so that charts and totals need not read the history."""

from headway.store import tallies
from headway.store.engine import Store


class Tallying:
    """Brings the tallies up to the present; any number of processes may try.

    >>> Tallying(store).run_once()  # doctest: +SKIP
    False
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def run_once(self) -> bool:
        """Count some minutes more; whether there is more to count. One question if not."""
        with self._store.reading() as tx:
            if not tallies.more_to_count(tx):
                return False
        with self._store.writing() as tx:
            return tallies.count_more(tx)
