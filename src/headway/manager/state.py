"""What the seven steps work with and pass on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.config import Settings
from headway.domain.execution import Execution
from headway.domain.manifest import ManifestDispatchView
from headway.manager.decide import Decision
from headway.store.executions import Running
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class ManagerEnv:
    """What every step may use: the open transaction with its ``now``, and the settings.

    ``chunk`` is how many manifests this cycle takes on at most. ``last_served`` is the group after
    which a cycle begins that has more groups than places. ``watches`` is whether it is time to look
    at what is live.
    """

    tx: Transaction
    settings: Settings
    chunk: int
    last_served: int = 0
    watches: bool = True


@dataclass(frozen=True)
class ManagerState:
    """What one pass over at most one chunk of candidates has found out so far."""

    views: Mapping[int, ManifestDispatchView] = field(default_factory=dict)
    candidates: tuple[int, ...] = ()
    running: tuple[Running, ...] = ()
    cancelled: tuple[int, ...] = ()
    reaped_pending: tuple[Execution, ...] = ()
    reaped_in_progress: tuple[Execution, ...] = ()
    dead_lettered: tuple[int, ...] = ()
    decisions: tuple[Decision, ...] = ()
    last_served: int = 0
    queued: int = 0
    refused: Mapping[int, str] = field(default_factory=dict)

    @property
    def reaped(self) -> tuple[Execution, ...]:
        """What the two stale reapers failed."""
        return self.reaped_pending + self.reaped_in_progress
