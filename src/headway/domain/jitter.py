"""Spreading runs that are due at the same moment, without storing anything.

The jitter of an occurrence is drawn from a hash of the manifest's key and the occurrence itself,
so every poll and every redeployment finds the same value.
"""

import hashlib
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def jitter(key: str, nominal: datetime, variance: timedelta) -> timedelta:
    """Return how much later than *nominal* to run: whole seconds, uniform in 0 to *variance*.

    >>> ten = datetime(2025, 1, 1, 10, tzinfo=UTC)
    >>> [str(jitter(key, ten, timedelta(minutes=5))) for key in ("load-1", "load-2")]
    ['0:02:39', '0:04:28']
    """
    widest = variance // timedelta(seconds=1)
    if widest <= 0:
        return timedelta(0)
    instant = (nominal - _EPOCH) // timedelta.resolution
    drawn = hashlib.sha256(f"{instant}:{key}".encode("utf-8", "surrogatepass")).digest()
    return timedelta(seconds=int.from_bytes(drawn) % (widest + 1))
