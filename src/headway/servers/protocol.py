"""The one thing a task server must do."""

from collections.abc import Sequence
from typing import Protocol


class TaskServer(Protocol):
    """Takes executions that were just dispatched and sees that somebody runs them."""

    def submit(self, execution_ids: Sequence[int]) -> None:
        """Take these pending executions; called after their transaction has committed."""
