"""Headway's own workers: the pending executions in the database are their queue."""

from collections.abc import Callable, Sequence


class LocalServer:
    """Wakes the workers; a pending execution needs no further hand-over.

    >>> woken = []
    >>> LocalServer(lambda: woken.append(True)).submit([7])
    >>> woken
    [True]
    """

    def __init__(self, wake_workers: Callable[[], None]) -> None:
        self._wake_workers = wake_workers

    def submit(self, execution_ids: Sequence[int]) -> None:
        """Tell the workers that something is pending."""
        self._wake_workers()
