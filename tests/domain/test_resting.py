"""Entries wait while an exclusion covers the moment, also where nobody knows when it ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headway import exclude
from headway.domain.exclusion_json import exclusions_to_json
from headway.domain.exclusion_kinds import Exclusion
from headway.domain.resting import PUZZLED_PAUSE, resting_until, why_resting
from headway.domain.work_queue import RestingTimes, Source, WorkQueueEntry

NOON = datetime(2025, 1, 6, 12, tzinfo=UTC)  # a Monday
ALWAYS = (exclude.window("00:00", "12:00"), exclude.window("12:00", "00:00"))


def an_entry(times: RestingTimes | None) -> WorkQueueEntry:
    return WorkQueueEntry(
        *(1, "load", Source.SCHEDULE, 0, NOON, 1, 1, "load-users", "users", 0, None), resting=times
    )


def times_of(*exclusions: Exclusion) -> RestingTimes:
    text = exclusions_to_json(exclusions)
    assert text is not None
    return RestingTimes(text, "UTC")


@pytest.mark.parametrize(
    ("times", "end"),
    [
        (times_of(exclude.window("11:00", "13:00")), NOON + timedelta(hours=1)),
        (times_of(*ALWAYS), NOON + PUZZLED_PAUSE),
        (RestingTimes("of a later version", "UTC"), NOON + PUZZLED_PAUSE),
    ],
    ids=["until it ends", "without an end", "unreadable"],
)
def test_what_is_excluded_waits(times: RestingTimes, end: datetime) -> None:
    assert resting_until([an_entry(times)], NOON) == {times: end}


@pytest.mark.parametrize("times", [None, times_of(exclude.window("13:00", "14:00"))])
def test_what_is_not_excluded_does_not(times: RestingTimes | None) -> None:
    assert resting_until([an_entry(times)], NOON) == {}


def test_entries_with_different_exclusions_are_asked_one_by_one() -> None:
    lunch, later = (times_of(exclude.window("11:00", end)) for end in ("13:00", "14:00"))
    awake = times_of(exclude.window("13:00", "14:00"))
    entries = [an_entry(times) for times in (lunch, None, later, awake, lunch)]
    hour = timedelta(hours=1)
    assert resting_until(entries, NOON) == {lunch: NOON + hour, later: NOON + 2 * hour}


def test_why_something_rests() -> None:
    lunch = times_of(exclude.window("11:00", "13:00"))
    assert why_resting(lunch, NOON) == "nothing runs between 11:00 and 13:00"
    assert why_resting(lunch._replace(zone="Asia/Tokyo"), NOON) == ""
    unreadable = why_resting(RestingTimes("of a later version", "UTC"), NOON)
    assert unreadable.startswith("its exclusions cannot be read: exclusions 'of a later version'")
