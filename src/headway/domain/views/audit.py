"""The audit trail as its page shows it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AuditFilter:
    """Which records; what is left out does not restrict.

    >>> AuditFilter(actor="ops").since is None
    True
    """

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    since: datetime | None = None


@dataclass(frozen=True)
class AuditRecord:
    """Who did what to what, and when."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str | None
