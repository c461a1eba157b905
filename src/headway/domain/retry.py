"""How long a failed manifest waits before its next attempt."""

import hashlib
import math
from dataclasses import dataclass
from datetime import timedelta

from headway.domain.text import shown
from headway.errors import DefinitionError


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff: the first delay, its growth per failure, and its ceiling.

    With a *jitter* of 0.2 a wait is up to a fifth longer, so that many do not come back at once.

    >>> RetryPolicy(delay=timedelta(seconds=10)).multiplier
    2.0
    """

    delay: timedelta = timedelta(minutes=5)
    multiplier: float = 2.0
    max_delay: timedelta = timedelta(hours=1)
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for field, value in (("delay", self.delay), ("max_delay", self.max_delay)):
            if not isinstance(value, timedelta) or value < timedelta(0):
                raise _refused(field, value, "must be a timedelta of at least 0 seconds")
        growth = self.multiplier
        if isinstance(growth, bool) or not isinstance(growth, (int, float)):
            raise _refused("multiplier", growth, "must be a number of at least 1")
        if not 1 <= growth < math.inf:
            raise _refused("multiplier", growth, "must be a number of at least 1")
        spread = self.jitter
        if isinstance(spread, bool) or not isinstance(spread, (int, float)) or not 0 <= spread <= 1:
            raise _refused("jitter", spread, "must be a number from 0 to 1")


def retry_delay(failures: int, policy: RetryPolicy) -> timedelta:
    """Return the wait after *failures* failures in a row: delay × multiplier^(failures - 1).

    >>> str(retry_delay(3, RetryPolicy()))
    '0:20:00'
    """
    if failures < 1 or not policy.delay:
        return timedelta(0)
    if policy.delay >= policy.max_delay:
        return policy.max_delay
    # Compared as exponents: multiplier ** 10**6 is beyond any float.
    growth = math.log(policy.multiplier) * (failures - 1)
    if growth > math.log(policy.max_delay / policy.delay):
        return policy.max_delay
    return min(policy.delay * float(policy.multiplier ** (failures - 1)), policy.max_delay)


def jittered(delay: timedelta, policy: RetryPolicy, key: str, failures: int) -> timedelta:
    """*delay* and up to ``policy.jitter`` of it more, the same whenever it is asked for.

    >>> policy = RetryPolicy(jitter=0.5)
    >>> str(jittered(timedelta(minutes=4), policy, "load-users", 1))
    '0:04:35'
    """
    drawn = hashlib.sha256(f"{failures}:{key}".encode("utf-8", "surrogatepass")).digest()
    share = int.from_bytes(drawn[:8]) / 2**64
    extra = delay * policy.jitter * share
    return delay + timedelta(seconds=int(extra.total_seconds()))


def _refused(field: str, value: object, rule: str) -> DefinitionError:
    example = "RetryPolicy(delay=timedelta(minutes=5), multiplier=2.0)"
    return DefinitionError(f"retry {field} {shown(value)} {rule}, for example {example}")
