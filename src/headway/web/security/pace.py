"""How often somebody may try: counted in memory, for as many as there are room for."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

REMEMBERED = 10_000


@dataclass
class _Bucket:
    left: float
    at: float


class Pace:
    """So many at once, and so many more each second; each *who* has its own share.

    >>> pace = Pace(at_once=2, per_second=0.5, clock=lambda: 0.0)
    >>> [pace.wait("ada", take=1) for _ in range(3)]
    [0, 0, 2]
    """

    def __init__(
        self, at_once: int, per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.at_once = at_once
        self._per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = Lock()

    def wait(self, who: str, *, take: int = 0) -> int:
        """How many seconds *who* has to wait; 0 allows one more and takes so many."""
        with self._lock:
            bucket = self._bucket(who)
            if bucket.left >= 1:
                bucket.left -= take
                return 0
            return math.ceil((1 - bucket.left) / self._per_second)

    def take(self, who: str) -> None:
        """Count one try of *who*."""
        with self._lock:
            bucket = self._bucket(who)
            bucket.left = max(0.0, bucket.left - 1)

    def _bucket(self, who: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(who, _Bucket(self.at_once, now))
        bucket.left = min(self.at_once, bucket.left + (now - bucket.at) * self._per_second)
        bucket.at = now
        self._buckets.move_to_end(who)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket
