"""When the steps of a run begin and end, on the database's clock."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache

from headway.domain.execution import StepRun
from headway.domain.text import printable
from headway.runner.outcome import STEP_LIMIT


class Stopwatch:
    """Times one step after another, beginning at the moment the run was claimed.

    >>> from datetime import UTC
    >>> seconds = iter([0.0, 1.0, 3.0])
    >>> watch = Stopwatch(datetime(2030, 1, 1, tzinfo=UTC), lambda: next(seconds))
    >>> watch.begin("load"); watch.end()
    >>> [(one.name, one.started_at.second, one.seconds) for one in watch.steps]
    [('load', 1, 2.0)]
    """

    __slots__ = ("_claimed_at", "_monotonic", "_running", "_zero", "steps")

    def __init__(
        self, claimed_at: datetime, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.steps: tuple[StepRun, ...] = ()
        self._claimed_at = claimed_at
        self._monotonic = monotonic
        self._zero = monotonic()
        self._running: tuple[str, float] | None = None

    def begin(self, step: str) -> None:
        """*step* begins now; the one before it has ended."""
        self.end()
        self._running = (step, self._monotonic())

    def end(self) -> None:
        """What was running has ended."""
        if self._running is None:
            return
        step, began = self._running
        self._running = None
        # In whole microseconds: of a fraction, a timedelta makes them in a roundabout way.
        started_at = self._claimed_at + timedelta(0, 0, int(1e6 * (began - self._zero)))
        seconds = round(self._monotonic() - began, 6)
        self.steps += (StepRun(shown_step(step), started_at, seconds),)


@lru_cache(maxsize=1000)
def shown_step(step: str) -> str:
    """The name of a step as it is stored.

    >>> shown_step("load")
    'load'
    """
    return printable(step, STEP_LIMIT)
