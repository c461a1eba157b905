"""Waiting for a database that is away, as a run does that needs an answer before it goes on.

The pauses are those between two attempts to record an outcome. The wait ends with
:class:`JobCancelled` once the run is asked to stop, at the latest by its own timeout.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from headway.errors import JobCancelled
from headway.observe import Observer, told
from headway.runner.cancellation import Cancellation, StopReason
from headway.runner.completions import FIRST_PAUSE, LONGEST_PAUSE
from headway.store.engine import TRANSIENT

T = TypeVar("T")

LOOK_AT_HANDLE = 0.05


class Undecided(Exception):
    """The database answers, but what it has to decide first is not decided yet."""


WAITED_FOR = (*TRANSIENT, Undecided)


class Patience:
    """Repeats the attempts of one run for as long as the database is away.

    *gives_up* says that its process stops and cannot ask the run to: where the wait itself keeps
    the event loop from going on, the run is handed back then. After *longest* seconds the error of
    the last attempt is raised.

    >>> from headway.runner.cancellation import Cancellation
    >>> Patience(Cancellation(), Observer()).call(lambda: 7)
    7
    """

    def __init__(
        self,
        handle: Cancellation,
        observer: Observer,
        gives_up: Callable[[], bool] = lambda: False,
        longest: float = math.inf,
    ) -> None:
        self._handle = handle
        self._observer = observer
        self._gives_up = gives_up
        self._longest = longest
        self._since: float | None = None

    async def wait_for(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Await *attempt* until it succeeds; the event loop goes on meanwhile."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await attempt()
            except WAITED_FOR as error:
                for left in self._slices(pause, error):
                    await asyncio.sleep(left)
            pause = min(pause * 2, LONGEST_PAUSE)

    def call(self, attempt: Callable[[], T]) -> T:
        """Call *attempt* until it succeeds, in this thread."""
        pause = FIRST_PAUSE
        while True:
            try:
                return attempt()
            except WAITED_FOR as error:
                for left in self._slices(pause, error):
                    time.sleep(left)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _slices(self, pause: float, error: BaseException) -> Iterator[float]:
        """The pause in parts, between which the run may be asked to stop."""
        self._observer.emit("loop.failed", loop="worker", error=told(error))
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= self._longest:
            raise error
        until = now + pause
        while (left := until - time.monotonic()) > 0:
            if self._gives_up():
                self._handle.request(StopReason.SHUTDOWN)
            if self._handle.requested:
                raise JobCancelled("stopped while the database was away") from error
            yield min(left, LOOK_AT_HANDLE)
