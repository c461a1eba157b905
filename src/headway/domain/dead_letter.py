"""The dead letter: a manifest that failed too often and waits for a person."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SAID_SO = "the job said that trying again would not help"
"""The reason of a dead letter whose job raised ``DoNotRetry``."""


class DeadLetterStatus(StrEnum):
    """Whether a person has looked at it yet, and what they decided."""

    AWAITING_INTERVENTION = "awaiting_intervention"
    RETRIED = "retried"
    ACKNOWLEDGED = "acknowledged"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead letter as it is stored."""

    id: int
    manifest_id: int
    external_id: str
    status: DeadLetterStatus
    dead_lettered_at: datetime
    reason: str
    failures: int
    resolved_at: datetime | None
    resolution_note: str | None


def failed_too_often(failures: int, max_retries: int) -> bool:
    """Whether a manifest with this many consecutive failures becomes a dead letter.

    ``max_retries`` counts attempts in all, so 3 means three failures; a manifest that has not
    failed is never dead-lettered, not even with ``max_retries=0``.

    >>> [failed_too_often(n, 3) for n in (0, 2, 3)]
    [False, False, True]
    >>> failed_too_often(0, 0)
    False
    """
    return failures >= max(max_retries, 1)


def dead_letter_reason(failures: int, max_retries: int) -> str:
    """The sentence stored with a dead letter; rows of earlier versions keep theirs.

    >>> dead_letter_reason(3, 3)
    'failed 3 times in a row (max_attempts 3)'
    """
    times = "once" if failures == 1 else f"{failures} times in a row"
    return f"failed {times} (max_attempts {max_retries})"


def crash_reason(crashes: int) -> str:
    """The sentence stored with the dead letter of a job that takes its workers with it.

    >>> crash_reason(3)
    'its job killed its worker 3 times'
    """
    return f"its job killed its worker {crashes} times"


def hand_back_reason(crashes: int) -> str:
    """The sentence stored with the dead letter of a job that was begun and handed back too often.

    >>> hand_back_reason(3)
    'its job was charged with 3 lost workers, the last for being handed back too often'
    """
    return (
        f"its job was charged with {crashes} lost workers, the last for being handed back too often"
    )
