"""Cron by macro and by factory: the same schedules as by expression."""

from datetime import UTC, datetime
from typing import Any

import pytest

import headway
from headway.domain.schedule import Cron, cron
from headway.errors import ScheduleError


@pytest.mark.parametrize(
    ("macro", "expression"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("  @Daily ", "0 0 * * *"),
    ],
)
def test_macros_are_expanded(macro: str, expression: str) -> None:
    assert cron(macro) == cron(expression)
    assert cron(macro, tz="Europe/Berlin").expression == expression


@pytest.mark.parametrize(
    ("macro", "hint"),
    [("@dayly", "did you mean @daily?"), ("@reboot", "known macro"), ("@every 5m", "known macro")],
)
def test_an_unknown_macro_is_refused_with_the_nearest(macro: str, hint: str) -> None:
    with pytest.raises(ScheduleError, match=r"cron expression .*for example") as refused:
        cron(macro)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("made", "expression"),
    [
        (cron.hourly(), "0 * * * *"),
        (cron.hourly(59), "59 * * * *"),
        (cron.daily(), "0 0 * * *"),
        (cron.daily(23, 59), "59 23 * * *"),
        (cron.weekly("sunday"), "0 0 * * 0"),
        (cron.weekly("Sat", 6, 30), "30 6 * * 6"),
        (cron.weekly(1, hour=9), "0 9 * * 1"),
        (cron.monthly(), "0 0 1 * *"),
        (cron.monthly(31, 6, 30), "30 6 31 * *"),
        (cron.secondly(), "* * * * * *"),
        (cron.minutely(), "* * * * *"),
        (cron.minutely(second=59), "59 * * * * *"),
        (cron.hourly(15, 30), "30 15 * * * *"),
        (cron.hourly(second=30), "30 0 * * * *"),
        (cron.daily(9, 30, 15), "15 30 9 * * *"),
        (cron.weekly("mon", 9, second=1), "1 0 9 * * 1"),
        (cron.monthly(15, 9, 30, 45), "45 30 9 15 * *"),
        (cron.monthly(second=0), "0 0 1 * *"),
    ],
)
def test_factories(made: Cron, expression: str) -> None:
    assert made == cron(expression)


def test_factories_take_a_zone() -> None:
    nine = cron.daily(hour=9, tz="Europe/Berlin")
    assert nine.next_after(datetime(2025, 1, 1, tzinfo=UTC)) == datetime(2025, 1, 1, 8, tzinfo=UTC)
    for made in (
        cron.hourly(tz="Asia/Tokyo"),
        cron.weekly(0, tz="Asia/Tokyo"),
        cron.monthly(tz="Asia/Tokyo"),
        cron.minutely(tz="Asia/Tokyo"),
        cron.secondly(tz="Asia/Tokyo"),
    ):
        assert made.tz == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (cron.secondly(), "Every second"),
        (cron.minutely(), "Every minute"),
        (cron.minutely(second=30), "At second 30 of every minute"),
        (cron.hourly(15, second=30), "At second 30 at minute 15 past every hour"),
        (cron.daily(9, second=30, tz="Asia/Tokyo"), "At 09:00:30 every day (Asia/Tokyo)"),
        (cron.weekly("mon", 9, 0, 30), "At 09:00:30 on Monday"),
        (cron.monthly(15, 9, 0, 30), "At 09:00:30 on the 15th day of every month"),
    ],
)
def test_factories_with_seconds_are_described_with_them(made: Cron, words: str) -> None:
    assert made.describe() == words


def test_factories_with_seconds_fire_at_them() -> None:
    nine = datetime(2025, 1, 1, 9, tzinfo=UTC)
    assert cron.minutely(second=30).next_after(nine) == nine.replace(second=30)
    assert cron.secondly().next_after(nine) == nine.replace(second=1)
    assert cron.daily(9, second=5).next_after(nine) == nine.replace(second=5)


def test_cron_is_one_object_that_explains_itself() -> None:
    assert headway.cron is cron
    assert repr(cron) == "cron"
    assert ">>> " in (cron.__doc__ or "")


BAD: list[tuple[str, tuple[Any, ...], str]] = [
    ("hourly", (60,), "minute 60 must be a whole number from 0 to 59"),
    ("hourly", (-1,), "minute -1"),
    ("hourly", (True,), "minute True"),
    ("hourly", ("5",), "minute '5'"),
    ("hourly", (5.0,), "minute 5.0"),
    ("daily", (24,), "hour 24 must be a whole number from 0 to 23"),
    ("daily", (0, 60), "minute 60"),
    ("weekly", (7,), "day 7 must be a weekday by name, or 0 (Sunday) to 6"),
    ("weekly", ("someday",), "day 'someday'"),
    ("weekly", (True,), "day True"),
    ("weekly", (None,), "day None"),
    ("weekly", (1, 24), "hour 24"),
    ("monthly", (0,), "day 0 must be a whole number from 1 to 31"),
    ("monthly", (32,), "day 32"),
    ("monthly", ("1\n*",), r"day '1\n*'"),
    ("minutely", (60,), "second 60 must be a whole number from 0 to 59"),
    ("minutely", (-1,), "second -1"),
    ("minutely", (True,), "second True"),
    ("minutely", ("* 9",), "second '* 9'"),
    ("hourly", (0, 60), "second 60"),
    ("daily", (0, 0, 0.5), "second 0.5"),
    ("weekly", (1, 0, 0, None), "second None"),
    ("monthly", (1, 0, 0, 61), "second 61"),
]


@pytest.mark.parametrize(("factory", "values", "message"), BAD)
def test_bad_values_are_refused_in_one_line(
    factory: str, values: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ScheduleError) as refused:
        getattr(cron, factory)(*values)
    text = str(refused.value)
    assert text.startswith(message)
    assert f"for example cron.{factory}(" in text
    assert "\n" not in text
