"""Exclusions as the text of their database column: ASCII JSON, equal for equal exclusions."""

import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from headway.domain.exclusion_kinds import (
    Between,
    Dates,
    Days,
    Exclusion,
    Holidays,
    Then,
    Window,
    check_then,
    clock_text,
    parse_clock,
)
from headway.domain.schedule_rules import check_weekday, refused, weekday_name
from headway.errors import ScheduleError

_EXAMPLE = '[{"days":["sat"],"kind":"days","then":"skip"}]'


def exclusion_text(exclusion: Exclusion) -> str:
    """Return one exclusion as JSON.

    >>> exclusion_text(Days(frozenset({6})))
    '{"days":["sat"],"kind":"days","then":"skip"}'
    """
    fields = {"kind": exclusion.kind, "then": exclusion.then.value, **_values(exclusion)}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def exclusions_to_json(exclusions: Sequence[Exclusion]) -> str | None:
    """Return *exclusions* as one JSON list, in a fixed order; None when there are none.

    >>> exclusions_to_json([Days(frozenset({6}))])
    '[{"days":["sat"],"kind":"days","then":"skip"}]'
    """
    texts = sorted({exclusion_text(one) for one in exclusions})
    return f"[{','.join(texts)}]" if texts else None


def exclusions_from_json(text: str | None) -> tuple[Exclusion, ...]:
    """Return the exclusions of a column, refusing what this version does not know.

    >>> exclusions_from_json('[{"country":"DE","kind":"holidays","then":"defer"}]')[0].describe()
    'on public holidays of DE'
    """
    if text is None:
        return ()
    try:
        items = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise refused("exclusions", text, "must be a JSON list", _EXAMPLE) from None
    if not isinstance(items, list):
        raise refused("exclusions", text, "must be a JSON list", _EXAMPLE)
    return tuple(_exclusion(item) for item in items)


def _exclusion(item: Any) -> Exclusion:
    kind = item.get("kind") if isinstance(item, dict) else None
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    if make is None:
        rule = f"must have a known kind: {', '.join(_MAKERS)}"
        raise refused("exclusion", item, rule, _EXAMPLE)
    try:
        values = {name: value for name, value in item.items() if name not in ("kind", "then")}
        return make(check_then(item.get("then", "skip")), **values)
    except ScheduleError:
        raise
    except (TypeError, ValueError):
        rule = f"must have the fields of kind {kind}, and no others"
        raise refused("exclusion", item, rule, _EXAMPLE) from None


def _values(exclusion: Exclusion) -> dict[str, object]:
    match exclusion:
        case Days():
            return {"days": [weekday_name(number) for number in sorted(exclusion.days)]}
        case Dates():
            return {"dates": [day.isoformat() for day in sorted(exclusion.dates)]}
        case Between():
            return {"start": exclusion.start.isoformat(), "end": exclusion.end.isoformat()}
        case Window():
            return {"start": clock_text(exclusion.start), "end": clock_text(exclusion.end)}
        case Holidays(subdivision=None):
            return {"country": exclusion.country}
        case Holidays():
            return {"country": exclusion.country, "subdivision": exclusion.subdivision}
    raise refused("exclusion", exclusion, "must come from exclude", "exclude.weekends()")


def _days(then: Then, days: list[str]) -> Days:
    numbers = (check_weekday(day, 'exclude.days("sat", "sun")') for day in _listed(days))
    return Days(frozenset(numbers), then=then)


def _dates(then: Then, dates: list[str]) -> Dates:
    return Dates(frozenset(date.fromisoformat(day) for day in _listed(dates)), then=then)


def _between(then: Then, start: str, end: str) -> Between:
    return Between(date.fromisoformat(start), date.fromisoformat(end), then=then)


def _window(then: Then, start: str, end: str) -> Window:
    return Window(parse_clock("start", start), parse_clock("end", end), then=then)


def _holidays(then: Then, country: str, subdivision: str | None = None) -> Holidays:
    return Holidays(country, subdivision, then=then)


def _listed(values: list[str]) -> list[str]:
    if not isinstance(values, list):
        raise TypeError("not a list")
    return values


_MAKERS: dict[str, Callable[..., Exclusion]] = {
    "between": _between,
    "dates": _dates,
    "days": _days,
    "holidays": _holidays,
    "window": _window,
}
