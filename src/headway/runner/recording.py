"""Outcomes on their way into the database, in one transaction, and told once they are there."""

from collections.abc import Callable, Mapping, Sequence

from headway.domain.execution import Ended, Execution, ExecutionState, Outcome
from headway.domain.retry import RetryPolicy
from headway.observe import Observer
from headway.store import outcomes
from headway.store.engine import TRANSIENT, Store
from headway.store.hand_backs import Charge
from headway.store.transaction import Transaction

OnRecorded = Callable[[Sequence[Ended | Execution]], None]


class Recording:
    """Records how *owner*'s executions ended; called with the outcomes, it returns those recorded,
    which *on_recorded* is told of.

    A connection that is lost during a commit leaves it open whether that was done. So whoever
    tries again looks first: what is on record just so was written here.
    """

    def __init__(
        self,
        store: Store,
        owner: str,
        observer: Observer,
        backoff: RetryPolicy = outcomes.BACKOFF,
        on_recorded: OnRecorded = lambda recorded: None,
        max_crashes: int = 3,
    ) -> None:
        self._store = store
        self._on_recorded = on_recorded
        self._backoff = backoff
        self._max_crashes = max_crashes
        self._owner = owner
        self._observer = observer
        self._uncertain: set[int] = set()

    def __call__(self, ended: Mapping[int, Outcome]) -> set[int]:
        """Record all of *ended* that is still the owner's."""
        in_brief = not self._observer.wants(f"execution.{ExecutionState.COMPLETED}")
        charge = Charge(self._max_crashes)
        try:
            with self._store.briefly() as tx:
                written = outcomes.finish(
                    tx, self._owner, ended, self._backoff, in_brief=in_brief, charge=charge
                )
                before = self._written_before(tx, ended, written)
        except TRANSIENT:
            self._uncertain |= ended.keys()
            raise
        self._uncertain -= ended.keys()
        recorded: list[Ended | Execution] = [*written, *before]
        for one in recorded:
            if one.state is not ExecutionState.COMPLETED or not in_brief:
                self._observer.emit(f"execution.{one.state}", **one.told())
        emit_dead_letters(self._observer, charge)
        self._on_recorded(recorded)
        return {one.id for one in recorded}

    def _written_before(
        self, tx: Transaction, ended: Mapping[int, Outcome], recorded: Sequence[Ended]
    ) -> list[Execution]:
        missing = self._uncertain & (ended.keys() - {one.id for one in recorded})
        if not missing:
            return []
        return outcomes.written_by(tx, self._owner, {key: ended[key] for key in missing})


def emit_dead_letters(observer: Observer, charge: Charge) -> None:
    """Emit an event for each manifest that was dead-lettered for being handed back too often."""
    for one in charge.dead_lettered:
        observer.emit("manifest.dead_lettered", external_id=one.external_id)
