"""What the JobDispatcher's four steps pass on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.config import Settings
from headway.dispatcher.capacity import Admission
from headway.domain.work_queue import WorkQueueEntry
from headway.observe import Observer
from headway.store.executions import Active
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class DispatchEnv:
    """What every step may use: the open transaction under the dispatch lock, and the settings."""

    tx: Transaction
    settings: Settings
    observer: Observer


@dataclass(frozen=True)
class DispatchState:
    """What one cycle has found out so far."""

    entries: tuple[WorkQueueEntry, ...] = ()
    active: Active = field(default_factory=lambda: Active(0, {}))
    admissions: tuple[Admission, ...] = ()
    dispatched: Mapping[int, int] = field(default_factory=dict)
