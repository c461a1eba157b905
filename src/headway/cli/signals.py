"""SIGTERM, Ctrl-C and a closed terminal as messages: nothing is ever interrupted halfway."""

import math
import signal
import time
from queue import Empty, SimpleQueue
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

PULSE = 0.2

Stops = SimpleQueue[int]


class Terminated(KeyboardInterrupt):
    """SIGTERM came before anything ran: an end like any other, where Ctrl-C is a person's."""


class StopSignals:
    """Until :meth:`install`, these signals end the command; from then on each goes into ``stops``.

    A handler may run in the middle of anything, so it only puts into a queue that is made for it.

    >>> signals = StopSignals()           # doctest: +SKIP
    >>> signals.install()                 # doctest: +SKIP
    >>> signal.Signals(signals.wait())   # doctest: +SKIP
    <Signals.SIGTERM: 15>
    """

    def __init__(self) -> None:
        self.stops: Stops = SimpleQueue()
        # As the first process of a container, one without a handler would not even be delivered.
        signal.signal(signal.SIGTERM, _terminate)

    def install(self) -> None:
        """From now on the signals wait in ``stops``."""
        for number in SIGNALS:
            # nohup has asked for a hang-up to be ignored.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda number, frame: self.stops.put(number))

    def wait(self, deadline: float = math.inf) -> int | None:
        """The next of ``stops``, or None once ``time.monotonic()`` has reached *deadline*.

        Python runs handlers in the main thread only. A signal that another thread received, or
        that came just before this one went to sleep, is not seen until this one wakes up.
        """
        while (left := deadline - time.monotonic()) > 0:
            try:
                return self.stops.get(timeout=min(PULSE, left))
            except Empty:
                continue
        return None


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
