"""Public holidays by country, from the optional package ``holidays``, one year at a time."""

import difflib
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from importlib import import_module
from typing import Any

from headway.domain.schedule_rules import refused
from headway.extras import require

# Some hundred countries of interest, each for a few years around the present.
CALENDARS_KEPT = 512

_EXAMPLE = 'exclude.holidays("DE")'


def is_holiday(country: str, subdivision: str | None, day: date) -> bool:
    """Return whether *day* is a public holiday there; needs the extra ``holidays``.

    >>> is_holiday.__name__
    'is_holiday'
    """
    return day in _holidays_of_year(country, subdivision, day.year)


def check_country(country: str, subdivision: str | None) -> None:
    """Refuse a country or subdivision that has no calendar, suggesting the nearest.

    >>> check_country.__name__
    'check_country'
    """
    known = _calendars()
    if country not in known:
        near = _nearest_country(country, known)
        hint = f" (did you mean {near!r}?)" if near else ""
        raise refused("country", country, f"must be a country code{hint}", _EXAMPLE)
    subdivisions = known[country]
    if subdivision is not None and subdivision not in subdivisions:
        near = next(iter(difflib.get_close_matches(subdivision, subdivisions, n=1)), None)
        hint = f" (did you mean {near!r}?)" if near else ""
        choice = f"one of {', '.join(subdivisions[:12])}" if subdivisions else "left out"
        rule = f"of {country} must be {choice}{hint}"
        raise refused("subdivision", subdivision, rule, 'exclude.holidays("DE", subdivision="BY")')


@lru_cache(maxsize=CALENDARS_KEPT)
def _holidays_of_year(country: str, subdivision: str | None, year: int) -> frozenset[date]:
    calendar = _package().country_holidays(country, subdiv=subdivision, years=year, expand=False)
    return frozenset(calendar)


def _calendars() -> Mapping[str, list[str]]:
    calendars: Mapping[str, list[str]] = _package().list_supported_countries()
    return calendars


def _nearest_country(name: str, known: Mapping[str, list[str]]) -> str | None:
    """The code most likely meant by *name*, which may be a country's name in English."""
    registered = getattr(import_module("holidays.registry"), "COUNTRIES", {})
    names = {entry[0].casefold(): entry[1] for entry in registered.values()}
    names |= {code.casefold(): code for code in known}
    wanted = name[:64].casefold().replace(" ", "")
    close = difflib.get_close_matches(wanted, names, n=1)
    return names[close[0]] if close else None


def _package() -> Any:
    require("holidays")
    return import_module("holidays")
