"""Server processes as their page shows them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ServerOverview:
    """A process with its lease; ``late`` if a third of the lease has passed without a beat."""

    id: str
    host: str
    pid: int
    roles: tuple[str, ...]
    workflows: tuple[str, ...]
    slots: int
    running: int
    started_at: datetime
    renewed_at: datetime
    expires_at: datetime
    unbroken_since: datetime | None
    alive: bool
    late: bool
