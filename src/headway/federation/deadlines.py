"""The deadline monitor: objectives nobody has touched for too long leave a pause state, once.

It needs no claim: the id of such a pause follows from the objective and its last change, so that
any number of processes may look, as often as they like.
"""

from headway.domain.azolla.deadlines import SHORTEST, overdue
from headway.store import objectives, pause_states
from headway.store.engine import Store
from headway.store.objectives import Place

PAGE = 1000


class DeadlineMonitor:
    """Writes what is overdue, a page of objectives in each transaction.

    >>> DeadlineMonitor(store).run_once()  # doctest: +SKIP
    2
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def run_once(self) -> int:
        """Look at every open objective once; returns how many are overdue."""
        late, place = self._page(None)
        while place is not None:
            more, place = self._page(place)
            late += more
        return late

    def _page(self, after: Place | None) -> tuple[int, Place | None]:
        with self._store.writing() as tx:
            found = objectives.open_tickets(tx, tx.now - SHORTEST, PAGE, after)
            late = overdue(found, tx.now)
            pause_states.add(tx, late)
        whole = len(found) == PAGE
        return len(late), (found[-1].updated_at, found[-1].objective_id) if whole else None
