"""headway runs many related jobs under control, with a complete record of what happened."""

import headway_command.as_module  # noqa: F401 - obeys stop signals while the rest is imported
from headway.definition.app import Headway
from headway.definition.making import Item
from headway.domain.azolla.artifacts import ContextSnapshot
from headway.domain.azolla.page import Page
from headway.domain.exclusions import exclude
from headway.domain.manifest import Group
from headway.domain.retry import RetryPolicy
from headway.domain.routing import TaskServer
from headway.domain.schedule import cron, every, once
from headway.errors import HeadwayError, JobCancelled
from headway.run import DoNotRetry, RetryAfter, Run
from headway.store.fence import fence

__version__ = "0.1.0"

__all__ = [
    "ContextSnapshot",
    "DoNotRetry",
    "Group",
    "Headway",
    "HeadwayError",
    "Item",
    "JobCancelled",
    "Page",
    "RetryAfter",
    "RetryPolicy",
    "Run",
    "TaskServer",
    "__version__",
    "cron",
    "every",
    "exclude",
    "fence",
    "once",
]
