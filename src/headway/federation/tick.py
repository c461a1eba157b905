"""What the steps of the Manifest Scheduler Worker hand to one another, and what they work with."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from headway.domain.azolla.artifacts import ClaimRecord, ContextSnapshot, Event, Workorder
from headway.domain.azolla.context import Urgency
from headway.domain.work_queue import NewEntry
from headway.federation.asking import Ask, Asked
from headway.observe import Observer
from headway.store.engine import Store
from headway.store.events import KnownEvent


@dataclass(frozen=True)
class Rules:
    """How long and how often: from the settings."""

    lease: timedelta
    max_attempts: int
    query_budget: timedelta
    manifest_budget: timedelta


@dataclass(frozen=True)
class WorkerEnv:
    """What a tick works with: the store, who asks, whom, and in whose name."""

    store: Store
    observer: Observer
    owner: str
    azolla_id: str
    azollas: tuple[str, ...]
    ask: Ask
    rules: Rules
    entry_of: Callable[[Workorder], NewEntry]


@dataclass(frozen=True)
class LocalState:
    """What this deployment knows of itself."""

    objective_id: str
    pending_captures: int
    urgency: tuple[Urgency, ...]


@dataclass(frozen=True)
class Tick:
    """One event on its way; without a claim there is nothing to do, and every step passes on."""

    candidates: tuple[KnownEvent, ...] = ()
    event: Event | None = None
    claim: ClaimRecord | None = None
    asked: tuple[Asked, ...] = ()
    local: LocalState | None = None
    snapshot: ContextSnapshot | None = None
    workorder: Workorder | None = None
    parked: int = 0
    processed: bool = False
    waiting: bool = False
