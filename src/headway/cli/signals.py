"""SIGTERM, Ctrl-C and a closed terminal as messages: nothing is ever interrupted halfway."""

import _thread
import math
import signal
import time
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Thread

from headway_command.stopping import (
    SIGNALS,
    Interrupted,
    interrupt_on_signals,
    is_interrupting,
    noted,
)

PULSE = 0.2
BY_PARENT = -1

Stops = SimpleQueue[int]


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
        self._requested = False
        self._asked = 0
        self._by_parent = 0
        # As the first process of a container, one without a handler would not even be delivered.
        interrupt_on_signals()

    def install(self) -> None:
        """From now on the signals wait in ``stops``.

        Raises :class:`Interrupted` if one came before and its own exception was swallowed.
        """
        for number in SIGNALS:
            # nohup has asked for a hang-up to be ignored.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda number, frame: self._request(number))
        if noted() is not None:
            raise Interrupted

    def _request(self, number: int) -> None:
        self._requested = True
        self.stops.put(number)

    def obey(self, parent: Connection) -> None:
        """Stop also when the process that started this one says so, and at once when it is gone.

        A signal to the whole group reaches both, and the parent passes it on: that is one request.
        """
        Thread(target=self._obey, args=(parent,), name="headway-parent", daemon=True).start()

    def _obey(self, parent: Connection) -> None:
        try:
            while parent.recv_bytes():
                self._told_by_parent(1)
        except (EOFError, OSError):
            self._told_by_parent(2)

    def _told_by_parent(self, times: int) -> None:
        for _ in range(times):
            self._request(BY_PARENT)
        if is_interrupting():  # nothing runs yet
            _thread.interrupt_main(signal.SIGTERM)

    def is_requested(self) -> bool:
        """Return whether a stop was requested, also by a signal whose interrupt was swallowed."""
        return self._requested or noted() is not None

    def wait(self, deadline: float = math.inf) -> int | None:
        """The next of ``stops``, or None once ``time.monotonic()`` has reached *deadline*.

        Python runs handlers in the main thread only. A signal that another thread received, or
        that came just before this one went to sleep, is not seen until this one wakes up.
        """
        while (left := deadline - time.monotonic()) > 0:
            try:
                asked = self.stops.get(timeout=min(PULSE, left))
            except Empty:
                continue
            if self._is_news(asked):
                return asked
        return None

    def _is_news(self, asked: int) -> bool:
        """Not what the parent passes on of a signal that came here as well, nor the reverse."""
        if asked not in (BY_PARENT, *SIGNALS):
            return True
        before = max(self._asked, self._by_parent)
        self._by_parent += asked == BY_PARENT
        self._asked += asked != BY_PARENT
        return max(self._asked, self._by_parent) > before
