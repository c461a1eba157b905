"""Exclusions, asked once more before a run starts. Pure: no database, no clock.

The manager queues nothing inside an exclusion; but an entry may be queued before one begins and
find its group full, or be a retry that comes due later.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from headway.domain.exclusion_json import exclusions_from_json
from headway.domain.exclusions import excluded, free_from
from headway.domain.work_queue import RestingTimes, WorkQueueEntry
from headway.errors import HeadwayError

# When to look again at what this server cannot read, or sees no end of.
PUZZLED_PAUSE = timedelta(hours=1)


def resting_until(entries: Iterable[WorkQueueEntry], now: datetime) -> dict[RestingTimes, datetime]:
    """Which exclusions of *entries* cover *now*, and when what has them may start."""
    asked = {entry.resting for entry in entries if entry.resting is not None}
    ends = {times: _end_of_rest(times, now) for times in asked}
    return {times: end for times, end in ends.items() if end is not None}


def why_resting(times: RestingTimes, now: datetime) -> str:
    """What keeps an entry that has these exclusions at rest *now*, in words.

    >>> from datetime import UTC
    >>> from headway.domain.exclusion_json import exclusions_to_json
    >>> from headway.domain.exclusions import exclude
    >>> noon = RestingTimes(exclusions_to_json((exclude.window("11:00", "13:00"),)), "UTC")
    >>> why_resting(noon, datetime(2025, 1, 4, 12, tzinfo=UTC))
    'nothing runs between 11:00 and 13:00'
    """
    try:
        found = excluded(exclusions_from_json(times.exclusions), now, times.zone)
    except HeadwayError as error:
        return f"its exclusions cannot be read: {error}"
    return "" if found is None else f"nothing runs {found.describe()}"


def _end_of_rest(times: RestingTimes, now: datetime) -> datetime | None:
    try:
        exclusions = exclusions_from_json(times.exclusions)
        if excluded(exclusions, now, times.zone) is None:
            return None
        return free_from(exclusions, now, times.zone) or now + PUZZLED_PAUSE
    except HeadwayError:
        return now + PUZZLED_PAUSE
