"""Pages and their cursors: a place is read as it was written, and nothing else is."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from headway.domain.paging import (
    LONGEST_CURSOR,
    BadCursor,
    Page,
    checked_limit,
    cursor_at,
    microseconds,
    moment_at,
    numbers_of,
    page_of,
    place_of,
)
from headway.errors import DefinitionError


def written(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        (("load-7", 7), (str, int)),
        ((None, 7), (str, int)),
        ((-(2**63) + 1, 2**63 - 1), (int, int)),
        (("ünïcode??>>", 0), (str, int)),
    ],
)
def test_a_place_is_read_as_it_was_written(place: tuple[str, int], kinds: tuple[type]) -> None:
    cursor = cursor_at(*place)
    assert place_of(cursor, *kinds) == place
    assert not set(cursor) & set("=+/")


@pytest.mark.parametrize("first", [None, ""])
def test_the_first_page_has_no_place(first: str | None) -> None:
    assert place_of(first, int) is None
    assert numbers_of(first, 1) is None


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "ä",
        "=" * 5,
        cursor_at(7),
        cursor_at(7, 8, 9),
        cursor_at("7", 8),
        cursor_at(7, "8"),
        cursor_at(None, None),
        cursor_at(2**63, 1),
        cursor_at(-(2**63), 1),
        written([True, 1]),
        written({"a": 1, "b": 2}),
        written("ab"),
        written([7.0, 8]),
        f"{cursor_at(7, 8)}!!!!",
    ],
)
def test_what_no_page_has_given_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursor) as refused:
        place_of(cursor, int, int)
    ending = "must be the next of a page, unchanged; leave it out for the first page"
    assert str(refused.value).startswith("cursor = ")
    assert str(refused.value).endswith(ending)
    with pytest.raises(BadCursor):
        numbers_of(cursor, 2)


def test_numbers_are_read_as_many_as_there_are() -> None:
    assert numbers_of(cursor_at(7, 0, -3), 3) == (7, 0, -3)


def test_a_moment_keeps_its_microseconds() -> None:
    moment = datetime(2030, 1, 7, 12, 0, 1, 5, tzinfo=UTC)
    early = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert microseconds(moment) == 1_894_017_601_000_005
    assert microseconds(early) == -1
    for one in (moment, early, moment + timedelta(days=10_000)):
        assert moment_at(microseconds(one)) == one


def test_a_moment_beyond_all_time_is_no_place() -> None:
    with pytest.raises(BadCursor, match="9223372036854775807"):
        moment_at(2**63 - 1)


@pytest.mark.parametrize("limit", [1, 200])
def test_a_page_holds_so_many(limit: int) -> None:
    assert checked_limit(limit) == limit


@pytest.mark.parametrize("limit", [0, 201, True, 5.0, "5", None])
def test_what_is_no_length_of_a_page_is_refused(limit: int) -> None:
    with pytest.raises(DefinitionError) as refused:
        checked_limit(limit)
    rule = "must be a whole number from 1 to 200; for example 50"
    assert str(refused.value) == f"limit = {limit!r}: {rule}"


def test_a_page_ends_with_the_place_of_its_last_row() -> None:
    rows = [("a", 1), ("b", 2), ("c", 3)]
    assert page_of(rows, 2, lambda row: row) == Page(tuple(rows[:2]), cursor_at("b", 2))
    assert page_of(rows, 3, lambda row: row) == Page(tuple(rows), None)
    assert page_of([], 3, lambda row: row) == Page()
    assert page_of(rows, 1, lambda row: row).map(lambda row: row[1]).items == (1,)


def test_texts_alone_are_no_place() -> None:
    longest = "x" * 1532
    assert len(cursor_at(longest)) == LONGEST_CURSOR
    for cursor in (written("a"), written({"a": 1}), cursor_at(f"{longest}x"), cursor_at(7)):
        with pytest.raises(BadCursor):
            place_of(cursor, str)
    assert place_of(cursor_at(longest), str) == (longest,)
