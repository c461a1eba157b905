"""Waiting for a database that restarts while a process starts.

A running process survives a restart of the database in its loops. Before these loops run, every
piece of database work of the start goes through one :class:`DatabaseWait`.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from headway.errors import HeadwayError
from headway.observe import Observer
from headway.store.outages import Outage, outage_of

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
LOOK_FOR_STOP = 0.1
TELL_AGAIN = 60.0

Result = TypeVar("Result")
Clock = Callable[[], float]


class StoppedWaiting(HeadwayError):
    """The process was asked to stop while it waited for the database."""

    def __init__(self) -> None:
        super().__init__("stopped while waiting for the database")


class DatabaseWait:
    """Repeats database work of a start until the database at *address* answers.

    A server that answers that it starts or stops is waited for without limit, and so is one that
    has answered before. One that was never reached is waited for *unreached* long, because its
    address may be wrong. Every other error is raised at once.

    >>> DatabaseWait("postgresql://db/shop", Observer(), timedelta(minutes=1))(lambda: 42)
    42
    """

    def __init__(
        self,
        address: str,
        observer: Observer,
        unreached: timedelta,
        *,
        is_stopping: Callable[[], bool] = lambda: False,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = address
        self._observer = observer
        self._unreached = unreached.total_seconds()
        self._is_stopping = is_stopping
        self._clock = clock
        self._sleep = sleep
        self._answered = False
        self._told_at: float | None = None

    def __call__(self, work: Callable[[], Result]) -> Result:
        """Return the result of *work*, repeated while the database is away."""
        since, pause = self._clock(), FIRST_PAUSE
        while True:
            try:
                result = work()
            except Exception as error:
                outage = outage_of(error)
                if outage is None or self._is_too_long(outage, since):
                    raise
                self._tell(outage)
            else:
                self._answered = True
                return result
            self._rest(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _is_too_long(self, outage: Outage, since: float) -> bool:
        self._answered = self._answered or outage.answered
        return not self._answered and self._clock() - since >= self._unreached

    def _tell(self, outage: Outage) -> None:
        now = self._clock()
        if self._told_at is None or now - self._told_at >= TELL_AGAIN:
            self._told_at = now
            self._observer.emit("database.waiting", database=self._address, reason=outage.reason)

    def _rest(self, seconds: float) -> None:
        end = self._clock() + seconds
        while (left := end - self._clock()) > 0:
            if self._is_stopping():
                raise StoppedWaiting
            self._sleep(min(LOOK_FOR_STOP, left))
