"""What a pool takes from the database, and gives back."""

from collections.abc import Callable, Collection, Sequence

from headway.definition.registry import Registry
from headway.domain.execution import Ended, Execution, Outcome
from headway.domain.retry import RetryPolicy
from headway.domain.starting import Hands
from headway.runner.suspicion import Suspicion
from headway.store import executions, outcomes
from headway.store.engine import Store
from headway.store.executions import Owned
from headway.store.hand_backs import Charge
from headway.store.transaction import Transaction


class Claims:
    """Claims for owners; for one that has a lease only while that lives.

    Of the registered workflows, only those that it *takes* are claimed.

    >>> Claims(store, registry, suspicion, leased=True).claim("me", 4, [])  # doctest: +SKIP
    []
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        suspicion: Suspicion,
        *,
        leased: bool,
        takes: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self.takes = takes or registry.names
        self._suspicion = suspicion
        self._leased = leased
        self._last_chances = False

    def hands(self, owner: str, key: int, free: int) -> Hands:
        """So many *free* slots of *owner*, kept under this key for whoever dispatches to them."""
        return Hands(owner, free, self.takes(), self._registry.first_steps(), key)

    def claim(self, owner: str, limit: int, running: Sequence[Execution]) -> list[Execution]:
        """Start up to *limit* pending executions that may share a process with those *running*."""
        with self._store.briefly() as tx:
            if not self._leased:
                return self._start(tx, owner, limit)
            if not executions.hold_to_claim(tx, owner):
                return []
            crashes = [one.crashes for one in running]
            claimed = self._claim_last_chance(tx, owner, crashes)
            crashes += [one.crashes for one in claimed]
            left, beside = limit - len(claimed), self._suspicion.ordinary(crashes)
            return claimed + self._start(tx, owner, left, beside) if left else claimed

    def _claim_last_chance(
        self, tx: Transaction, owner: str, running: Sequence[int]
    ) -> list[Execution]:
        """At most one with every look: they are too rare to be asked for with every claim."""
        due, self._last_chances = self._last_chances, False
        crashes = self._suspicion.last_chance(running) if due else None
        return self._start(tx, owner, 1, crashes) if crashes else []

    def _start(
        self, tx: Transaction, owner: str, limit: int, crashes: range | None = None
    ) -> list[Execution]:
        names, first_steps = self.takes(), self._registry.first_steps()
        return executions.claim_pending(tx, owner, limit, names, first_steps, crashes)

    def look(self, owners: Collection[str]) -> list[Owned]:
        """What is running in the names of *owners*."""
        with self._store.reading() as tx:
            self._last_chances = executions.has_pending(tx, self._suspicion.last)
            return executions.owned_by_any(tx, owners)

    @property
    def last_chance_waits(self) -> bool:
        """Whether the last look saw a run that has to be claimed alone."""
        return self._last_chances

    def hand_back(self, owned: Sequence[Owned], charge: Charge) -> list[Execution]:
        """Give up what is *owned*; returns what was still its owner's."""
        handed_back = []
        for owner in sorted({one.owner for one in owned}):
            ids = [one.execution_id for one in owned if one.owner == owner]
            with self._store.briefly() as tx:
                handed_back += outcomes.hand_back(tx, owner, ids, charge)
        return handed_back

    def end(self, owned: Owned, outcome: Outcome, backoff: RetryPolicy) -> list[Ended]:
        """Record that the execution has ended with *outcome*; empty if another has ended it."""
        with self._store.briefly() as tx:
            return outcomes.finish(tx, owned.owner, {owned.execution_id: outcome}, backoff)
