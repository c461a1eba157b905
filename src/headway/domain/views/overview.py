"""How the whole deployment stands."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

BADGED_TO = 1_000


@dataclass(frozen=True)
class Summary:
    """What waits and runs now, and how the last minutes went.

    Counts stop at ``COUNTED_TO``. Rates are those of the last five minutes, or of all the time a
    younger deployment has been there (``rated``); ``success_rate`` is the share of completed among
    those that completed or failed in the last hour, None if none did.
    """

    now: datetime
    queued: int
    delayed: int
    pending: int
    running: int
    completed_per_minute: float
    failed_per_minute: float
    success_rate: float | None
    dead_letters: int
    workers: int
    slots: int
    rated: timedelta


@dataclass(frozen=True)
class Waiting:
    """What every page says beside its links, counted up to ``BADGED_TO``."""

    running: int
    queued: int
    dead_letters: int


@dataclass(frozen=True)
class ThroughputPoint:
    """What ended in one span of a chart; ``run_seconds`` is how long all of it ran together."""

    start: datetime
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    run_seconds: float = 0.0


@dataclass(frozen=True)
class Throughput:
    """A chart: its points in order without gaps, each ``step`` long."""

    step: timedelta
    points: tuple[ThroughputPoint, ...]


@dataclass(frozen=True)
class NextRun:
    """A manifest that will run by itself, and when at the earliest."""

    external_id: str
    group_name: str
    workflow: str
    at: datetime


class AttentionKind(StrEnum):
    """What a person should look at."""

    NO_MANAGER = "no_manager"
    NO_WORKER = "no_worker"
    LATE_SERVER = "late_server"
    DEAD_LETTER = "dead_letter"
    FAILING = "failing"
    DISABLED_GROUP = "disabled_group"
    UNKNOWN_WORKFLOW = "unknown_workflow"


@dataclass(frozen=True)
class Attention:
    """Something that needs attention, in one sentence; ``subject`` is what its page is about."""

    kind: AttentionKind
    subject: str
    sentence: str
    since: datetime | None = None
