"""How long the lease of this process lasts for certain, without asking the database.

The keeper of the lease writes it, from any thread; the workers read it before each run.
"""

import math
import time
from collections.abc import Callable
from functools import partial


def _steady() -> Callable[[], float]:
    # Unlike the monotonic clock, this one goes on while the machine sleeps (Linux).
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic if boot is None else partial(time.clock_gettime, boot)


steady = _steady()
"""Seconds since some moment in the past; never set back, and counted while the machine sleeps."""


class LeaseTime:
    """The owner whose lease this process has, and until when it lasts.

    Without a keeper there is no lease, and nothing ends.

    >>> lease = LeaseTime()
    >>> lease.lasts("me")
    True
    >>> lease.renewed("me", until=steady() + 15)
    >>> lease.lasts("me"), lease.lasts("me before")
    (True, False)
    >>> lease.end()
    >>> lease.lasts("me")
    False
    """

    __slots__ = ("_owner", "_until")

    def __init__(self) -> None:
        self._owner: str | None = None
        self._until = math.inf

    def renewed(self, owner: str, until: float) -> None:
        """Note that *owner*'s lease lasts until this moment of :data:`steady`."""
        self._owner = owner
        self._until = until

    def end(self) -> None:
        """Note that the lease is lost."""
        self._until = -math.inf

    def lasts(self, owner: str | None) -> bool:
        """Whether *owner*'s lease has not expired: a comparison, for every run."""
        return steady() < self._until and self._owner in (None, owner)
