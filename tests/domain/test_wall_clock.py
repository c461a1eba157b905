"""Cron on a turned clock, against an oracle that looks at every single minute."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.domain.schedule import cron
from headway.domain.wall_clock import latest_occurrence, next_occurrence

# Spring and autumn around a turn: at two, by half an hour, at midnight, back into yesterday.
TURNS = [
    ("Europe/Berlin", datetime(2025, 3, 29, 12)),
    ("Europe/Berlin", datetime(2025, 10, 25, 12)),
    ("America/New_York", datetime(2025, 3, 8, 12)),
    ("America/New_York", datetime(2025, 11, 1, 12)),
    ("Australia/Lord_Howe", datetime(2025, 10, 4, 3)),
    ("Australia/Lord_Howe", datetime(2025, 4, 5, 3)),
    ("America/Havana", datetime(2025, 3, 8, 12)),
    ("America/Havana", datetime(2025, 11, 1, 12)),
    ("Asia/Beirut", datetime(2025, 3, 29, 6)),
    ("Asia/Beirut", datetime(2025, 10, 25, 6)),
    ("Pacific/Apia", datetime(2011, 12, 29, 18)),
]
BY_ELAPSED_TIME = ["* * * * *", "*/7 * * * *", "* 3 * * *", "*/10 0-4 * * *", "17 * * * *"]
AT_FIXED_TIMES = [
    "30 2 * * *",
    "0 0 * * *",
    "0 2,3 * * *",
    "0 3 * * *",
    "0-59 2 * * *",
    "15 1 * * *",
]
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += MINUTE


def walls(expression: str, zone: tzinfo, span: list[datetime]) -> set[datetime]:
    """What the expression means on a clock that nobody turns."""
    last = wall_at(span[-1], zone)
    return set(
        takewhile(lambda wall: wall <= last, CronSim(expression, wall_at(span[0], zone) - SECOND))
    )


def wall_at(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def elapsed_oracle(expression: str, zone: tzinfo, span: list[datetime]) -> list[datetime]:
    matching = walls(expression, zone, span)
    return [moment for moment in span if wall_at(moment, zone) in matching]


def fixed_oracle(expression: str, zone: tzinfo, span: list[datetime]) -> list[datetime]:
    """What the hand of the clock sweeps over for the first time at this very minute."""
    matching = walls(expression, zone, span)
    swept = wall_at(span[0], zone) - MINUTE
    found = []
    for moment in span:
        wall = wall_at(moment, zone)
        if matching.intersection(minutes(swept + MINUTE, wall + MINUTE)):
            found.append(moment)
        swept = max(swept, wall)
    return found


def forwards(expression: str, zone: tzinfo, start: datetime, end: datetime) -> list[datetime]:
    found = []
    position = next_occurrence(expression, zone, start - SECOND)
    while position is not None and position < end:
        found.append(position)
        position = next_occurrence(expression, zone, position)
    return found


def backwards(expression: str, zone: tzinfo, start: datetime, end: datetime) -> list[datetime]:
    found = []
    position = latest_occurrence(expression, zone, end - SECOND)
    while position is not None and position >= start:
        found.append(position)
        position = latest_occurrence(expression, zone, position - timedelta.resolution)
    return found[::-1]


@pytest.mark.parametrize(("name", "start"), TURNS)
@pytest.mark.parametrize("expression", BY_ELAPSED_TIME + AT_FIXED_TIMES)
def test_around_a_turn_of_the_clock(name: str, start: datetime, expression: str) -> None:
    zone = ZoneInfo(name)
    start = start.replace(tzinfo=UTC)
    end = start + timedelta(days=1, hours=12)
    oracle = fixed_oracle if expression in AT_FIXED_TIMES else elapsed_oracle
    expected = oracle(expression, zone, list(minutes(start, end)))
    assert forwards(expression, zone, start, end) == expected
    assert backwards(expression, zone, start, end) == expected


@pytest.mark.parametrize(("name", "start"), TURNS[:6])
@pytest.mark.parametrize(
    "expression", ["* * * * *", "30 2 * * *", "*/20 1-3 * * *", "0-59 2 * * *"]
)
def test_every_starting_point_leads_to_the_same_occurrences(
    name: str, start: datetime, expression: str
) -> None:
    zone = ZoneInfo(name)
    start = start.replace(tzinfo=UTC)
    end = start + timedelta(days=1)
    expected = forwards(expression, zone, start, end + timedelta(days=2))
    for moment in minutes(start + timedelta(hours=11), end - timedelta(hours=3)):
        for point in (moment, moment + timedelta(seconds=29, microseconds=7)):
            position = bisect_right(expected, point)
            assert next_occurrence(expression, zone, point) == expected[position]
            if position:
                assert latest_occurrence(expression, zone, point) == expected[position - 1]


@pytest.mark.story(29)
@pytest.mark.parametrize(
    ("expression", "day", "expected"),
    [
        ("30 2 * * *", datetime(2025, 3, 30), ["2025-03-30T03:00:00+02:00"]),
        ("30 2 * * *", datetime(2025, 10, 26), ["2025-10-26T02:30:00+02:00"]),
        ("0 30 2 * * *", datetime(2025, 3, 30), ["2025-03-30T03:00:00+02:00"]),
        ("*/30 2 * * *", datetime(2025, 3, 30), []),
        (
            "*/30 2 * * *",
            datetime(2025, 10, 26),
            [
                "2025-10-26T02:00:00+02:00",
                "2025-10-26T02:30:00+02:00",
                "2025-10-26T02:00:00+01:00",
                "2025-10-26T02:30:00+01:00",
            ],
        ),
    ],
)
def test_the_skipped_and_the_repeated_hour(
    expression: str, day: datetime, expected: list[str]
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    start = day.replace(tzinfo=zone).astimezone(UTC)
    end = (day + timedelta(days=1)).replace(tzinfo=zone).astimezone(UTC)
    found = forwards(expression, zone, start, end)
    assert [moment.astimezone(zone).isoformat() for moment in found] == expected


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("expression", ["0 0 3 * * *", "0 3 * * *", "30 2 * * *", "0 30 2 * * *"])
def test_a_daily_job_runs_every_day_of_two_years(name: str, expression: str) -> None:
    zone = ZoneInfo(name)
    start = datetime(2025, 1, 1, tzinfo=zone).astimezone(UTC)
    end = datetime(2027, 1, 1, tzinfo=zone).astimezone(UTC)
    days = [moment.astimezone(zone).date() for moment in forwards(expression, zone, start, end)]
    assert len(days) == len(set(days)) == 730


@settings(max_examples=200)
@given(
    expression=st.sampled_from([*BY_ELAPSED_TIME, *AT_FIXED_TIMES, "* * * * * *", "0 0 12 L * *"]),
    name=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    moment=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
)
def test_occurrences_rise_strictly_and_backwards_finds_the_same(
    expression: str, name: str, moment: datetime
) -> None:
    schedule = cron(expression, name)
    previous = moment
    for _ in range(20):
        following = schedule.next_after(previous)
        assert following is not None
        assert following > previous
        if previous != moment:
            just_before = following - timedelta.resolution
            assert latest_occurrence(expression, ZoneInfo(name), just_before) == previous
        previous = following
