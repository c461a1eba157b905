"""What the JobDispatcher's four steps pass on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from headway.config import Settings
from headway.definition.task_servers import TaskServers
from headway.domain.admission import Active, Admission
from headway.domain.execution import Execution
from headway.domain.front import Front
from headway.domain.starting import Hands
from headway.domain.work_queue import WorkQueueEntry
from headway.store.glance import Glance
from headway.store.servers import Workers
from headway.store.transaction import Transaction


@dataclass(frozen=True)
class DispatchEnv:
    """What every step may use: the open transaction under the dispatch lock, and the settings.

    ``workers`` are the living ones if work goes to headway's own, else None: nobody knows.
    ``task_servers`` is what this application sends elsewhere; ``keep_hands``
    asks for free workers in this process, who start at once what is dispatched to them; if they
    are the only ones, ``free_hands`` is how many there are. Who is not ``careful`` saves the time
    it takes to find one bad entry among many. ``front`` is where the queue began in the last cycle,
    if that is worth remembering. What one glance has ``seen`` need not be read.
    """

    tx: Transaction
    settings: Settings
    workers: Workers | None
    task_servers: TaskServers
    keep_hands: Callable[[], Hands | None] = lambda: None
    careful: bool = True
    free_hands: int | None = None
    front: Front = field(default_factory=Front)
    seen: Glance | None = None


NOT_COUNTED = Active(0, {})


@dataclass(frozen=True)
class DispatchState:
    """What one cycle has found out so far; ``full`` if there may be more than its entries, and
    when what is delayed is due. Before it dispatches, nothing lives below ``live_from``."""

    entries: tuple[WorkQueueEntry, ...] = ()
    full: bool = False
    next_at: datetime | None = None
    live_from: int = 0
    active: Active = NOT_COUNTED
    admissions: tuple[Admission, ...] = ()
    dispatched: Mapping[int, int] = field(default_factory=dict)
    started: tuple[Execution, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)

    @property
    def counted(self) -> Active | None:
        """What was live before this cycle, if that was counted."""
        return None if self.active is NOT_COUNTED else self.active
