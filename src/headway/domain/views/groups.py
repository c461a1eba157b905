"""Groups as lists and pages show them."""

from dataclasses import dataclass
from datetime import datetime

from headway.domain.views.executions import ExecutionOverview
from headway.domain.views.states import NodeState

COUNTED_TO = 10_000
"""Where counting stops: a number this high means that there are at least so many."""


@dataclass(frozen=True)
class GroupFilter:
    """Which groups: those whose name begins with ``search``, or with ``anywhere`` contains it.

    >>> GroupFilter(search="etl").enabled is None
    True
    """

    search: str = ""
    anywhere: bool = False
    enabled: bool | None = None


@dataclass(frozen=True)
class GroupOverview:
    """A group and how much of what it holds; what has ended is that of the last day.

    ``active`` counts what is dispatched and not over, ``queued`` what waits and may start.
    """

    name: str
    max_active_jobs: int | None
    priority: int
    enabled: bool
    manifests: int
    queued: int
    active: int
    completed: int
    failed: int
    dead_letters: int
    cancelled: int = 0
    run_seconds: float = 0.0

    @property
    def state(self) -> NodeState:
        """How it stands, in one word."""
        if self.active:
            return NodeState.RUNNING
        if self.dead_letters:
            return NodeState.FAILED
        if not self.enabled:
            return NodeState.DISABLED
        return NodeState.QUEUED if self.queued else NodeState.IDLE


@dataclass(frozen=True)
class GroupDetail:
    """Everything about a group: who holds its slots, and the groups before and after it."""

    overview: GroupOverview
    id: int
    created_at: datetime
    updated_at: datetime
    holders: tuple[ExecutionOverview, ...]
    parents: tuple[str, ...]
    children: tuple[str, ...]
