"""How values are shown on pages: lengths of time, moments, numbers and payloads, at their edges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from fastapi import Request

from headway.web import filters
from headway.web.rendering import environment

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)


def shown(expression: str, *, hx: bool = False, **values: Any) -> str:
    """What a template shows that is looked at now, or asked for again by its page."""
    headers = [(b"hx-request", b"true")] if hx else []
    known = {"request": Request({"type": "http", "headers": headers}), "now": NOW}
    return environment().from_string(f"{{{{ {expression} }}}}").render(known | values)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 ms"),
        (0.9994, "999 ms"),
        (1, "1.0 s"),
        (59.9, "59.9 s"),
        (60, "1 min"),
        (61.9, "1 min 1 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (3660, "1 h 1 min"),
        (47 * 3600 + 59 * 60, "47 h 59 min"),
        (48 * 3600, "2 d"),
        (49 * 3600 + 1800, "2 d 1 h"),
        (timedelta(minutes=2), "2 min"),
    ],
)
def test_a_length_of_time_is_told_in_the_units_that_matter(
    value: timedelta | float | None, text: str
) -> None:
    assert filters.duration(value) == text
    assert shown("value|duration", value=value) == text


@pytest.mark.parametrize(
    ("away", "text"),
    [
        ({"seconds": 0.9}, "now"),
        ({"seconds": 1}, "in 1 s"),
        ({"seconds": 59.9}, "in 59 s"),
        ({"seconds": 60}, "in 1 min"),
        ({"seconds": 3599}, "in 59 min"),
        ({"hours": 1}, "in 1 h"),
        ({"hours": 23, "minutes": 59}, "in 23 h"),
        ({"days": 1}, "in 1 d"),
        ({"days": 400}, "in 400 d"),
        ({"seconds": -0.9}, "now"),
        ({"seconds": -1}, "1 s ago"),
        ({"days": -3, "hours": -5}, "3 d ago"),
    ],
)
def test_a_distance_is_told_in_one_unit(away: dict[str, float], text: str) -> None:
    assert filters.distance(NOW + timedelta(**away), NOW) == text


@pytest.mark.parametrize(
    ("length", "text"),
    [(timedelta(seconds=90), "1 min"), (timedelta(0), "now"), (timedelta(hours=5), "5 h")],
)
def test_a_rough_length_has_one_unit(length: timedelta, text: str) -> None:
    assert shown("length|roughly", length=length) == text


def time_of(moment: str, text: str, kind: str) -> str:
    exact = moment.replace("T", " ").replace("+00:00", " UTC")
    return f'<time datetime="{moment}" title="{exact}" data-time="{kind}">{text}</time>'


def test_a_moment_is_shown_in_utc_for_the_browser_to_change() -> None:
    east = datetime(2026, 1, 5, 10, 30, tzinfo=timezone(timedelta(hours=2)))
    expected = time_of("2026-01-05T08:30:00+00:00", "2026-01-05 08:30:00 UTC", "instant")
    assert shown("moment|instant", moment=east) == expected
    assert shown("moment|instant", moment=None) == "–"
    assert filters.exact(east) == "2026-01-05 08:30:00 UTC"


def test_how_long_ago_is_told_once_and_left_to_the_page_after_that() -> None:
    moment = NOW - timedelta(minutes=5)
    iso, exact = "2026-01-05T08:55:00+00:00", "2026-01-05 08:55:00 UTC"
    assert shown("moment|ago", moment=moment) == time_of(iso, "5 min ago", "ago")
    assert shown("moment|ago", moment=moment, hx=True) == time_of(iso, exact, "ago")
    assert shown("moment|ago", moment=None) == "–"


def test_what_should_be_there_already_is_there_now() -> None:
    later, iso = NOW + timedelta(minutes=5), "2026-01-05T09:05:00+00:00"
    assert shown("moment|until", moment=later) == time_of(iso, "in 5 min", "until")
    exact = "2026-01-05 09:05:00 UTC"
    assert shown("moment|until", moment=later, hx=True) == time_of(iso, exact, "until")
    past = NOW - timedelta(minutes=5)
    expected = time_of("2026-01-05T08:55:00+00:00", "now", "until")
    assert shown("moment|until", moment=past) == expected
    assert shown("moment|until", moment=None) == "–"


def test_moments_inside_a_sentence_are_shown_in_the_readers_zone() -> None:
    first = time_of("2026-01-05T09:00:00+00:00", "2026-01-05 09:00:00 UTC", "instant")
    second = time_of("2026-02-01T10:30:00+00:00", "2026-02-01 10:30:00 UTC", "instant")
    told = "<b>from 2026-01-05 09:00:00 UTC to 2026-02-01 10:30 UTC & on"
    assert shown("told|in_zone", told=told) == f"&lt;b&gt;from {first} to {second} &amp; on"
    impossible = "not before 2026-13-45 09:00 UTC"
    assert shown("told|in_zone", told=impossible) == impossible


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (1234567, "1,234,567"), (1234.56, "1,234.6"), (2.0, "2.0")],
)
def test_a_number_has_its_thousands_apart(value: float | None, text: str) -> None:
    assert shown("value|number", value=value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"a":1}', '{\n  "a": 1\n}'),
        ({"name": "é", "at": NOW}, '{\n  "name": "é",\n  "at": "2026-01-05 09:00:00+00:00"\n}'),
        ("half a {", "half a {"),
        (None, "null"),
    ],
)
def test_a_payload_is_indented_json(value: object, text: str) -> None:
    assert filters.pretty(value) == text
