"""The table, the page, the JSON and the README's slot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.comparison.keeping import JSON, MARKDOWN, README, keep, put_into_readme
from benchmarks.comparison.measurements import Results, Row, Spread
from benchmarks.comparison.report import (
    BEGIN,
    END,
    MarkersMissing,
    as_json,
    between_markers,
    cell,
    from_json,
    number,
    page,
    table,
)

DRAIN = Row("drain", "drain", "jobs/s")
FLOOR = Row("floor", "round trip", "ms")
AROUND: dict[str, Any] = {
    "made_at": "2026-01-05T09:00:00+00:00",
    "commit": "0123456789ab",
    "command": "python -m benchmarks.comparison --full",
    "machine": {"processors": 2, "architecture": "x86_64", "load_average": 0.5},
    "versions": {
        "python": "3.11.7",
        "postgresql": "18.1",
        "pgqueuer": "1",
        "procrastinate": "2",
        "apscheduler": "3",
    },
    "postgresql": {"synchronous_commit": "on"},
    "sizes": {"repetitions": 3},
}


@pytest.fixture
def results() -> Results:
    made = Results()
    made.add(FLOOR, "this machine", 0.0612)
    for value in (9000.0, 10000.0, 11000.0):
        made.add(DRAIN, "headway", value)
    made.add(DRAIN, "PgQueuer", 8000.4)
    return made


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12345.6, "12,346"), (100.0, "100"), (99.94, "99.9"), (4.126, "4.13"), (0.06, "0.06")],
)
def test_a_number_has_three_digits_or_all_before_the_point(value: float, shown: str) -> None:
    assert number(value) == shown


def test_a_cell_shows_the_range_beside_the_median() -> None:
    assert cell(Spread(20.0, 10.0, 30.0, 3)) == "20.0 (10.0–30.0)"
    assert cell(Spread(20.0, 20.0, 20.0, 1)) == "20.0"
    assert cell(None) == "–"


def test_a_table_has_the_columns_its_rows_need(results: Results) -> None:
    assert table(results, [DRAIN]) == (
        "|  | headway | PgQueuer |\n"
        "| --- | ---: | ---: |\n"
        "| drain, jobs/s | 10,000 (9,000–11,000) | 8,000 |"
    )


def test_a_page_has_each_part_with_its_sentence(results: Results) -> None:
    text = page(results, {"drain": "Empties a queue.", "idle": "Not measured."}, "On two cores.")
    assert text.startswith("# headway beside its peers\n\nOn two cores.\n\n## floor")
    assert "## drain\n\nEmpties a queue.\n\n|  | headway" in text
    assert "idle" not in text


def test_json_holds_every_value_and_what_else_is_known(results: Results) -> None:
    document = json.loads(json.dumps(as_json(results, AROUND)))
    assert document["commit"] == "0123456789ab"
    assert document["rows"][1] == {
        "part": "drain",
        "title": "drain",
        "unit": "jobs/s",
        "subjects": {
            "headway": {
                "median": 10000.0,
                "low": 9000.0,
                "high": 11000.0,
                "values": [9000.0, 10000.0, 11000.0],
            },
            "PgQueuer": {"median": 8000.4, "low": 8000.4, "high": 8000.4, "values": [8000.4]},
        },
    }
    assert from_json(document).values == results.values


def test_only_what_is_between_the_markers_changes() -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert between_markers(text, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


@pytest.mark.parametrize("text", ["nothing", f"{BEGIN} alone", f"{END} alone"])
def test_a_page_without_both_markers_is_refused(text: str) -> None:
    with pytest.raises(MarkersMissing, match="write <!-- benchmark: begin -->"):
        between_markers(text, "new")


def test_the_readme_gets_its_table_from_what_was_kept(results: Results, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# headway\n{BEGIN}\n{END}\n", "utf-8")
    keep(results, AROUND, "the page", tmp_path / "results")
    put_into_readme(tmp_path / "results", readme)
    assert (tmp_path / "results" / MARKDOWN).read_text("utf-8") == "the page"
    assert (tmp_path / "results" / JSON).exists()
    text = readme.read_text("utf-8")
    assert "| drain, jobs/s | 10,000 (9,000–11,000) | 8,000 |" in text
    assert "round trip" not in text
    assert "`make bench-full` ([how, and what differs]" in text
    assert "2026-01-05, commit 0123456789ab, 2 processors" in text


def test_the_readme_has_a_place_for_the_table() -> None:
    assert "\nnew\n" in between_markers(README.read_text("utf-8"), "new")
