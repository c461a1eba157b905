"""Tables on terminals of every width: nothing is cut off without a word."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from headway.cli.fitting import Measure, columns_that_fit
from headway.cli.output import Column, show_table

NOW = datetime(2026, 1, 5, tzinfo=UTC)
Row = tuple[int, str, str, datetime, str]
COLUMNS = (
    Column[Row]("id", lambda one: one[0]),
    Column[Row]("manifest", lambda one: one[1], long=True),
    Column[Row]("group", lambda one: one[2], long=True, spare=True),
    Column[Row]("started", lambda one: one[3]),
    Column[Row]("failure", lambda one: one[4], long=True),
)
ROWS: list[Row] = [
    (101, "load-orders", "nightly", NOW - timedelta(minutes=3), "ValueError: no rows in the table"),
    (2002, "größe-日本", "nightly", NOW - timedelta(days=2), ""),
]


def shown(width: int, rows: list[Row] = ROWS) -> str:
    output = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    show_table(output, COLUMNS, rows, now=NOW)
    assert isinstance(output.file, io.StringIO)
    return output.file.getvalue()


def words(text: str) -> set[str]:
    return set(re.split(r"\s{2,}|\n", text))


@pytest.mark.parametrize("width", [120, 80, 60, 40, 30])
def test_every_id_and_name_is_whole(width: int) -> None:
    told = shown(width)

    assert {"101", "2002", "load-orders", "größe-日本", "3 min ago", "2 d ago"} <= words(told)
    assert all(len(line) <= width for line in told.splitlines())


def test_a_wide_terminal_shows_all_columns() -> None:
    assert "nightly" in shown(80)
    assert "no room" not in shown(80)


def test_a_narrower_one_says_what_it_leaves_out() -> None:
    told = shown(56)

    assert "nightly" not in told
    assert "no room here for group; --json tells all" in told


def test_one_that_is_too_narrow_for_a_table_gets_fields() -> None:
    told = shown(30, ROWS[:1])

    assert "no room" not in told
    assert {"group", "nightly", "failure"} <= words(told)
    assert [line.split()[0] for line in told.splitlines()[:2]] == ["id", "manifest"]


def test_a_column_that_says_nothing_goes_first() -> None:
    told = shown(40, ROWS[1:])

    assert "nightly" in told
    assert "failure" not in told
    assert "no room" not in told


def test_what_matters_is_never_left_out() -> None:
    measures = [Measure(4), Measure(10, spare=True), Measure(6, empty=True), Measure(50, long=True)]

    assert columns_that_fit(measures, 120) == [0, 1, 2, 3]
    assert columns_that_fit(measures, 40) == [0, 1, 3]
    assert columns_that_fit(measures, 26) == [0, 3]
    assert columns_that_fit(measures, 25) is None
