"""Dispatched and started in one go: work for free hands in the dispatcher's own process. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headway.domain.execution import Execution
from headway.domain.routing import LOCAL
from headway.domain.work_queue import WorkQueueEntry


@dataclass(frozen=True)
class Start:
    """Which entries start at once, in whose name, and with which step of each workflow.

    >>> Start("me", (7,), {"load": "read"}).owner
    'me'
    """

    owner: str
    entry_ids: tuple[int, ...]
    first_steps: Mapping[str, str]


@dataclass(frozen=True)
class Hands:
    """So many slots kept *free* for what is dispatched now, of workers who take *workflows*.

    The *key* is for those workers, who may keep several.

    >>> Hands("me", 2, ["load"]).free
    2
    """

    owner: str
    free: int
    workflows: Collection[str]
    first_steps: Mapping[str, str] = field(default_factory=dict)
    key: int = 0

    def start(self, admitted: Iterable[WorkQueueEntry]) -> Start:
        """The first of these entries that are for the own workers, as many as hands are free.

        >>> Hands("me", 2, ["load"]).start([]).entry_ids
        ()
        """
        own = (one for one in admitted if one.task_server == LOCAL)
        ids = [one.id for one in own if one.workflow in self.workflows]
        return Start(self.owner, tuple(ids[: self.free]), self.first_steps)


class OwnWorkers(Protocol):
    """The workers in the dispatcher's own process.

    >>> class NoHands:
    ...     owner, free = "me", 0
    ...     def reserve(self): return None
    ...     def start_at_once(self, hands, started): ...
    >>> workers: OwnWorkers = NoHands()
    >>> workers.reserve()
    """

    @property
    def owner(self) -> str:
        """In whose name they run."""

    @property
    def free(self) -> int:
        """How many slots are free at this moment."""

    def reserve(self) -> Hands | None:
        """Keep every free slot for what is dispatched now; None if there is none."""

    def start_at_once(self, hands: Hands, started: Collection[Execution]) -> None:
        """Run what was *started* in the name of these hands, and have the other slots back."""
