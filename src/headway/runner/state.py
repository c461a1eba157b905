"""What the JobRunner's steps pass on, and what they may use."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headway.config import Settings
from headway.definition.registry import RegisteredWorkflow, Registry
from headway.definition.replacing import SandboxAddress
from headway.domain.execution import Execution, Outcome
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry
from headway.store.engine import Store
from headway.store.executions import Progress
from headway.workflow import CallSync


@dataclass(frozen=True)
class RunnerEnv:
    """What the steps may use; how store verbs, sync steps and outcomes are carried out differs
    between a worker pool and a run in the caller's own thread."""

    store: Store
    registry: Registry
    owner: str
    cancellations: CancellationRegistry
    call_store: CallSync
    call_sync: CallSync
    record: Callable[[int, Outcome], Awaitable[bool | None]]
    report: Callable[[int, Progress], None]
    observer: Observer
    settings: Settings
    on_queued: Callable[[], None]
    loop: asyncio.AbstractEventLoop | None = None
    is_stopping: Callable[[], bool] = lambda: False
    longest_wait: float = math.inf
    beginning: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Where applications act in the process of an isolated run; None: on their own databases.
    sandbox: Callable[[], SandboxAddress] | None = None


class RunnerState(NamedTuple):
    """One execution on its way from claimed to recorded: None if that is left to others."""

    execution_id: int
    execution: Execution | None = None
    registered: RegisteredWorkflow | None = None
    value: Any = None
    outcome: Outcome | None = None
    recorded: bool | None = False
