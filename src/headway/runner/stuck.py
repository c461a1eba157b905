"""Runs that do not listen: asked to stop long ago, they go on, and keep their slots.

A thread cannot be ended from outside, and what runs in it may still write somewhere. Its slot stays
taken, so that the machine is not given more to do than it was meant to; and once half of the slots
are taken like that, only a new process helps.
"""

import time
from collections.abc import Callable, Collection, Mapping

from headway.config import Settings
from headway.domain.execution import Execution
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry


class StuckRuns:
    """Knows which of the *asked* runs of a pool are stuck; *on_half* of its slots is called once.

    >>> from headway.runner.cancellation import StopReason
    >>> asked, told = CancellationRegistry(), []
    >>> stuck = StuckRuns(Settings(worker_count=2), asked, Observer(), lambda: told.append("half"))
    >>> asked.register(7).request(StopReason.TIMEOUT)
    >>> stuck.look({}, now=time.monotonic() + 61)
    >>> told
    ['half']
    """

    def __init__(
        self,
        settings: Settings,
        asked: CancellationRegistry,
        observer: Observer,
        on_half: Callable[[], None],
    ) -> None:
        self._slots = settings.worker_count
        self._grace = settings.cancel_grace.total_seconds()
        self._asked = asked
        self._observer = observer
        self._on_half = on_half
        self._ids: set[int] = set()
        self._told_half = False

    def look(self, running: Mapping[int, Execution], now: float | None = None) -> None:
        """See who had the whole grace to stop and has not; who was stuck may have ended since."""
        moment = time.monotonic() if now is None else now
        before, self._ids = self._ids, self._asked.asked_before(moment - self._grace)
        for key in sorted(self._ids - before):
            if one := running.get(key):
                self._observer.emit(
                    "execution.stuck",
                    execution_id=one.id,
                    external_id=one.external_id,
                    workflow=one.workflow,
                )
        if not self._told_half and 2 * len(self._ids) >= self._slots:
            self._told_half = True
            self._on_half()

    def among(self, running: Collection[int]) -> int:
        """How many of those *running* nobody needs to wait for."""
        return len(self._ids.intersection(running))

    def give_up(self) -> None:
        """The process ends: they end as what they were asked to stop for.

        Handed back, a run that has worn out one process would wear out the next.
        """
        self._asked.give_up_on(self._ids)
        self._ids = set()
