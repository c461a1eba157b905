"""Every zone there is, around every turn of its clock in two years."""

from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from headway.domain.exclusions import exclude, excluded, free_from
from headway.domain.schedule import Cron, cron
from headway.domain.wall_clock import turn_between, zone

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
START, END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
ZONES = sorted(name for name in available_timezones() if zone(name) is not None)


def turns(clock: tzinfo) -> list[datetime]:
    """Every turn of the clock: no two are less than a day apart."""
    days = [START + n * DAY for n in range((END - START).days + 1)]
    found = [turn_between(one, two, clock) for one, two in pairwise(days)]
    return [turn for turn in found if turn is not None]


def occurrences(schedule: Cron, start: datetime, end: datetime) -> list[datetime]:
    """All in (start, end], walked forwards; walked backwards they must be the same."""
    forwards, backwards = [], []
    position = schedule.next_after(start)
    while position is not None and position <= end:
        forwards.append(position)
        position = schedule.next_after(position)
    position = schedule.latest(start, end)
    while position is not None:
        backwards.append(position)
        position = schedule.latest(start, position - timedelta.resolution)
    assert forwards == backwards[::-1]
    return forwards


def test_there_are_zones_and_turns() -> None:
    assert len(ZONES) > 400
    assert len(turns(ZoneInfo("Europe/Berlin"))) == 4
    assert len(turns(ZoneInfo("Africa/Casablanca"))) == 4
    assert turns(ZoneInfo("Asia/Tokyo")) == []


@pytest.mark.story(29)
@pytest.mark.parametrize("part", range(8))
def test_no_exception_no_duplicate_instant_no_lost_day(part: int) -> None:
    for name in ZONES[part::8]:
        for turn in turns(ZoneInfo(name)):
            check_daily(name, turn)
            check_hourly(name, turn)
            check_window(name, turn)


def check_daily(name: str, turn: datetime) -> None:
    clock = ZoneInfo(name)
    for made in (cron.daily(hour=2, minute=30, tz=name), cron("0 30 2 * * *", name)):
        found = occurrences(made, turn - 2 * DAY, turn + 2 * DAY)
        days = [moment.astimezone(clock).date() for moment in found]
        assert len(set(found)) == len(found), name
        assert all(two - one == DAY for one, two in pairwise(days)), name
        assert turn.astimezone(clock).date() in days, name


def check_hourly(name: str, turn: datetime) -> None:
    """An hourly job runs whenever the clock shows a full hour, also the second time."""
    clock = ZoneInfo(name)
    start, end = turn - 3 * HOUR, turn + 3 * HOUR
    minutes = [start + n * MINUTE for n in range(1, 6 * 60 + 1)]
    expected = [one for one in minutes if one.astimezone(clock).minute == 0]
    assert occurrences(cron.hourly(tz=name), start, end) == expected, name


def check_window(name: str, turn: datetime) -> None:
    """What is excluded ends, and from before a turn at the first minute that is free."""
    clock, windows = ZoneInfo(name), [exclude.window("01:30", "02:30")]
    start = turn - 2 * HOUR
    minutes = [start + n * MINUTE for n in range(5 * 60)]
    free = [not "01:30" <= f"{one.astimezone(clock):%H:%M}" < "02:30" for one in minutes]
    assert [excluded(windows, one, name) is None for one in minutes] == free, name
    for position in range(0, 3 * 60, 20):
        expected = minutes[free.index(True, position)]
        assert free_from(windows, minutes[position], name) == expected, name
