"""What the JobDispatcher's four steps pass on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.config import Settings
from headway.definition.task_servers import TaskServers
from headway.dispatcher.capacity import Admission
from headway.domain.work_queue import WorkQueueEntry
from headway.store.executions import Active
from headway.store.servers import Workers
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class DispatchEnv:
    """What every step may use: the open transaction under the dispatch lock, and the settings.

    ``workers`` are the living ones if work goes to headway's own, else None: nobody knows.
    ``task_servers`` is what this application sends elsewhere.
    """

    tx: Transaction
    settings: Settings
    workers: Workers | None
    task_servers: TaskServers


@dataclass(frozen=True)
class DispatchState:
    """What one cycle has found out so far."""

    entries: tuple[WorkQueueEntry, ...] = ()
    active: Active = field(default_factory=lambda: Active(0, {}))
    admissions: tuple[Admission, ...] = ()
    dispatched: Mapping[int, int] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
