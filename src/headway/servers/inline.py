"""Runs every execution at once, in the dispatcher's own thread; for tests and simulations."""

from collections.abc import Callable, Sequence


class InlineServer:
    """Calls *run* with each execution id before ``submit`` returns.

    >>> ran = []
    >>> InlineServer(ran.append).submit([7, 8])
    >>> ran
    [7, 8]
    """

    def __init__(self, run: Callable[[int], object]) -> None:
        self._run = run

    def submit(self, execution_ids: Sequence[int]) -> None:
        """Run these executions, one after another."""
        for execution_id in execution_ids:
            self._run(execution_id)
