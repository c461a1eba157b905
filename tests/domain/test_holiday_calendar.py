"""Public holidays, with a stand-in for the optional package and, where installed, with itself."""

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from headway import extras
from headway.domain import holiday_calendar
from headway.domain.exclusions import exclude, excluded, free_from
from headway.errors import MissingExtra, ScheduleError

UNITY, CHRISTMAS = date(2025, 10, 3), date(2025, 12, 25)


def stand_in() -> dict[str, ModuleType]:
    package: Any = ModuleType("holidays")
    package.__spec__ = ModuleSpec("holidays", None)
    registry: Any = ModuleType("holidays.registry")
    registry.COUNTRIES = {"germany": ("Germany", "DE", "DEU"), "japan": ("Japan", "JP", "JPN")}
    package.list_supported_countries = lambda: {"DE": ["BE", "BY"], "JP": []}

    def country_holidays(country: str, subdiv: str | None, years: int, expand: bool) -> set[date]:
        assert not expand
        german = {date(years, 10, 3), date(years, 12, 25), date(years, 12, 26)}
        return german | ({date(years, 11, 1)} if subdiv == "BY" else set())

    package.country_holidays = country_holidays
    return {"holidays": package, "holidays.registry": registry}


@pytest.fixture(params=["stand-in", *(["real"] if find_spec("holidays") else [])])
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    holiday_calendar._holidays_of_year.cache_clear()
    if request.param == "stand-in":
        for name, module in stand_in().items():
            monkeypatch.setitem(sys.modules, name, module)
    yield
    holiday_calendar._holidays_of_year.cache_clear()


def noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


@pytest.mark.usefixtures("package")
def test_holidays_of_a_country_and_of_a_part_of_it() -> None:
    germany, bavaria = exclude.holidays("DE"), exclude.holidays("DE", subdivision="BY")
    all_saints = date(2025, 11, 1)
    assert excluded([germany], noon(UNITY), "Europe/Berlin") is germany
    assert excluded([germany], noon(all_saints), "Europe/Berlin") is None
    assert excluded([bavaria], noon(all_saints), "Europe/Berlin") is bavaria


@pytest.mark.usefixtures("package")
def test_they_end_with_the_last_of_several_days() -> None:
    christmas = [exclude.holidays("DE", then="defer")]
    assert free_from(christmas, noon(CHRISTMAS), "UTC") == datetime(2025, 12, 27, tzinfo=UTC)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("country", "subdivision", "message"),
    [
        ("Germany", None, "did you mean 'DE'?"),
        ("de", None, "did you mean 'DE'?"),
        ("XQ", None, "must be a country code"),
        ("", None, "must be a short code"),
        (49, None, "must be a short code"),
        ("x" * 100_000, None, "must be a short code"),
        ("DE", "by", "of DE must be one of "),
        ("DE", "", "of DE must be one of "),
        ("DE", 5, "must be a short code"),
    ],
)
def test_unknown_places_are_refused(country: Any, subdivision: Any, message: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        exclude.holidays(country, subdivision)
    text = str(refused.value)
    assert message in text
    assert "for example exclude.holidays(" in text
    assert "\n" not in text
    assert len(text) < 300


@pytest.mark.usefixtures("package")
def test_calendars_are_made_once_and_not_without_end() -> None:
    germany = exclude.holidays("DE")
    for _ in range(3):
        excluded([germany], noon(UNITY), "UTC")
    kept = holiday_calendar._holidays_of_year.cache_info()
    assert (kept.misses, kept.hits) == (1, 2)
    assert kept.maxsize == holiday_calendar.CALENDARS_KEPT


def test_without_the_extra_the_declaration_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"headway-scheduler\[holidays\]"):
        exclude.holidays("DE")


def test_of_a_country_without_parts_the_part_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in stand_in().items():
        monkeypatch.setitem(sys.modules, name, module)
    holiday_calendar.check_country("JP", None)
    with pytest.raises(ScheduleError) as refused:
        exclude.holidays("JP", "13")
    example = 'for example exclude.holidays("DE", subdivision="BY")'
    assert str(refused.value) == f"subdivision '13' of JP must be left out, {example}"
    with pytest.raises(ScheduleError) as refused:
        exclude.holidays("DE", "B")
    hint = "one of BE, BY (did you mean 'B"
    assert hint in str(refused.value)
    with pytest.raises(ScheduleError) as refused:
        exclude.holidays(" Ja pan ")
    example = 'for example exclude.holidays("DE")'
    words = "must be a country code (did you mean 'JP'?)"
    assert str(refused.value) == f"country ' Ja pan ' {words}, {example}"
