"""Hands that the dispatcher keeps free for one cycle, in workers of its own process."""

from collections.abc import Collection
from types import TracebackType

from headway.domain.execution import Execution
from headway.domain.starting import Hands, OwnWorkers
from headway.store import executions
from headway.store.glance import Glance
from headway.store.transaction import Transaction


class KeptHands:
    """Given back at the end, with whatever *started* in a cycle that has committed.

    >>> with KeptHands(None) as hands:
    ...     hands.started
    ()
    """

    def __init__(self, workers: OwnWorkers | None) -> None:
        self.started: Collection[Execution] = ()
        self._workers = workers
        self._kept: Hands | None = None

    def keep(self, tx: Transaction, seen: Glance | None) -> Hands | None:
        """All that are free; None while their owner has no lease, or others have to come first.

        Whether that is so may have been *seen* already.
        """
        if self._workers is None:
            return None
        owner = self._workers.owner
        if executions.hold_to_start(tx, owner) if seen is None else seen.holder == owner:
            self._kept = self._workers.reserve()
        # They may go by another name since: then these have no lease that is held here.
        return self._kept if self._kept is not None and self._kept.owner == owner else None

    def __enter__(self) -> "KeptHands":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._workers is not None and self._kept is not None:
            self._workers.start_at_once(self._kept, self.started)
