"""What the dispatcher knows of the oldest live execution, noted for all who look for live ones."""

from collections.abc import Collection

from headway.domain.admission import Active
from headway.store.live import note_oldest, noted_oldest
from headway.store.transaction import Transaction

# So many that have ended are passed by whoever looks, rather than that each is noted.
STEP = 20_000


class OldestLive:
    """Notes now and then below which id nothing lives, under the dispatcher's lock.

    >>> OldestLive().note(tx, Active(3, {}, oldest=41_000))  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._noted: int | None = None
        self._newest: int | None = None

    def created(self, execution_ids: Collection[int]) -> None:
        """These have been dispatched, and may have ended by the next time."""
        self._newest = max(execution_ids, default=self._newest)

    def note(self, tx: Transaction, active: Active | None) -> None:
        """What is *active*, if it was counted before this cycle dispatched anything."""
        if active is None or not tx.on_postgresql:
            return
        oldest = self._newest if active.oldest is None else active.oldest
        if oldest is None:
            return
        if self._noted is None:
            self._noted = noted_oldest(tx)
        if not 0 <= oldest - self._noted < STEP:  # less than noted: ids have begun anew
            note_oldest(tx, oldest)
            self._noted = oldest
