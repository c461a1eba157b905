"""The orphan sweep: buries dead servers and starts what they were running again.

Every server sweeps, not only the one that leads: recovery must not wait for a leader.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from headway.domain.retry import RetryPolicy
from headway.observe import Observer
from headway.store import leases, outcomes
from headway.store.engine import Store


class Leased(Protocol):
    """Who sweeps: a server under the id it has at the moment, and how long its lease is."""

    id: str
    lease: timedelta


@dataclass(frozen=True)
class Swept:
    """What one pass did: how many servers were buried, runs ended, manifests dead-lettered."""

    buried: int = 0
    ended: int = 0
    dead_lettered: int = 0


class OrphanSweep:
    """Ends the runs of servers whose lease is over.

    >>> OrphanSweep(store, keeper, 3, observer).run_once().ended  # doctest: +SKIP
    2
    """

    def __init__(
        self,
        store: Store,
        own: Leased,
        max_crashes: int,
        observer: Observer,
        backoff: RetryPolicy = outcomes.BACKOFF,
    ) -> None:
        self._store = store
        self._backoff = backoff
        self._own = own
        self._max_crashes = max_crashes
        self._observer = observer

    def run_once(self) -> Swept:
        """Bury whoever is dead, then end what has no owner any more."""
        with self._store.briefly() as tx:
            buried = leases.bury(tx, self._own.id, self._own.lease)
        with self._store.briefly() as tx:
            ended, dead_lettered = outcomes.end_orphans(tx, self._max_crashes, self._backoff)
        for owner in buried:
            self._observer.emit("server.buried", owner=owner)
        for one in ended:
            self._observer.emit(f"execution.{one.state}", **one.told())
        for one in dead_lettered:
            self._observer.emit("manifest.dead_lettered", external_id=one.external_id)
        return Swept(len(buried), len(ended), len(dead_lettered))
