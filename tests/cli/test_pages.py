"""Long lists: which pages are fetched, and that one table or array is printed of them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from headway.cli.asking import read_moment, read_span
from headway.cli.listing import Listing, Paging, Walk
from headway.cli.output import Column
from headway.cli.times import duration, relative
from headway.domain.paging import Page

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Numbers:
    """Numbers up to a last one, and which pages of them were asked for."""

    def __init__(self, last: int, per_page: int = 200) -> None:
        self._last, self._per_page = last, per_page
        self.asked: list[tuple[str | None, int]] = []

    def __call__(self, cursor: str | None, most: int) -> Page[int]:
        self.asked.append((cursor, most))
        begin = int(cursor or 0)
        end = min(begin + min(most, self._per_page), self._last)
        return Page(tuple(range(begin, end)), str(end) if end < self._last else None)


@pytest.mark.parametrize(
    ("paging", "last", "asked", "rest"),
    [
        (Paging(50, False, None), 300, [(None, 50)], "50"),
        (Paging(50, False, "70"), 300, [("70", 50)], "120"),
        (Paging(50, False, None), 50, [(None, 50)], None),
        (Paging(450, False, None), 900, [(None, 200), ("200", 200), ("400", 50)], "450"),
        (Paging(450, False, None), 210, [(None, 200), ("200", 200)], None),
        (Paging(1, True, None), 401, [(None, 200), ("200", 200), ("400", 200)], None),
        (Paging(1, True, "390"), 401, [("390", 200)], None),
    ],
)
def test_pages_are_fetched_until_enough_is_there(
    paging: Paging, last: int, asked: list[tuple[str | None, int]], rest: str | None
) -> None:
    numbers = Numbers(last)
    walk = Walk(numbers, paging)
    begin = int(paging.after or 0)
    end = last if paging.everything else min(begin + paging.limit, last)
    assert list(walk) == list(range(begin, end))
    assert (numbers.asked, walk.rest) == (asked, rest)


def test_a_page_may_be_short(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = Numbers(10, per_page=2)
    assert list(Walk(numbers, Paging(5, False, None))) == [0, 1, 2, 3, 4]
    assert numbers.asked == [(None, 5), ("2", 3), ("4", 1)]


LISTING = Listing[int]([Column("number", lambda one: one)], "no numbers")


def test_a_long_table_has_its_titles_once(capsys: pytest.CaptureFixture[str]) -> None:
    LISTING.show(Numbers(401), Paging(1, True, None), now=NOW, as_json=False)
    out, err = capsys.readouterr()
    assert out.split() == ["number", *map(str, range(401))]
    assert err == ""


@pytest.mark.parametrize("as_json", [False, True])
def test_what_follows_is_named(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    LISTING.show(Numbers(9), Paging(2, False, None), now=NOW, as_json=as_json)
    out, err = capsys.readouterr()
    assert err == "there is more: --all shows it, --after 2 goes on from here\n"
    assert json.loads(out) == [0, 1] if as_json else out.split() == ["number", "0", "1"]


@pytest.mark.parametrize(("last", "printed"), [(0, "[]\n"), (2, "[\n  0,\n  1\n]\n")])
def test_an_array_is_one_value(capsys: pytest.CaptureFixture[str], last: int, printed: str) -> None:
    LISTING.show(Numbers(last), Paging(50, False, None), now=NOW, as_json=True)
    assert capsys.readouterr() == (printed, "")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("2026-01-05", datetime(2026, 1, 5, tzinfo=UTC)),
        ("2026-01-05T13:00", datetime(2026, 1, 5, 13, tzinfo=UTC)),
        ("2026-01-05T13:00+01:00", NOW),
    ],
)
def test_a_moment_is_in_utc_unless_it_says_otherwise(given: str, read: datetime) -> None:
    assert read_moment("--since", given) == read


def test_a_moment_may_be_so_long_ago() -> None:
    before = datetime.now(UTC)
    read = read_moment("--since", "1h30m")
    assert read is not None
    assert before <= read + timedelta(minutes=90) <= datetime.now(UTC)
    assert read_moment("--since", None) is None and read_span("--delay", None) is None


@pytest.mark.parametrize("given", ["yesterday", "999999d", "999999999999d"])
def test_what_is_no_moment_is_named_with_its_option(given: str) -> None:
    with pytest.raises(Exception, match=re.escape(f"--until = '{given}': must be a duration")):
        read_moment("--until", given)
    with pytest.raises(Exception, match=re.escape("for example --until 2h or --until 2026")):
        read_moment("--until", given)


@pytest.mark.parametrize(
    ("span", "exactly", "roughly"),
    [
        (timedelta(milliseconds=1500), "1.50 s", "2 s"),
        (timedelta(seconds=9.99), "9.99 s", "10 s"),
        (timedelta(seconds=10), "10 s", "10 s"),
        (timedelta(seconds=59), "59 s", "59 s"),
        (timedelta(seconds=60), "1 min", "1 min"),
        (timedelta(minutes=59, seconds=59), "59 min 59 s", "59 min"),
        (timedelta(hours=1), "1 h", "1 h"),
        (timedelta(hours=25), "1 d 1 h", "1 d"),
        (timedelta(days=2, minutes=59), "2 d", "2 d"),
    ],
)
def test_a_duration_in_two_units_or_one(span: timedelta, exactly: str, roughly: str) -> None:
    assert duration(span) == exactly
    assert duration(span, roughly=True) == roughly


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        (NOW, "now"),
        (NOW + timedelta(seconds=0.9), "now"),
        (NOW - timedelta(seconds=1), "1 s ago"),
        (NOW + timedelta(seconds=1), "in 1 s"),
        (NOW + timedelta(hours=25), "in 1 d"),
    ],
)
def test_a_moment_as_seen_from_now(moment: datetime, told: str) -> None:
    assert relative(moment, NOW) == told
