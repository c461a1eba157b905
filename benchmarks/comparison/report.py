"""The results as Markdown and as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.comparison.measurements import Results, Row, Spread

BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"


class MarkersMissing(Exception):
    """The page has no place for the table; the message says what to write into it."""


def table(results: Results, rows: Sequence[Row]) -> str:
    """A line for each thing measured and a column for each subject: median and range."""
    subjects = results.subjects(rows)
    lines = [_line(["", *subjects]), _line(["---", *("---:" for _ in subjects)])]
    for row in rows:
        spreads = (results.spread(row, subject) for subject in subjects)
        lines.append(_line([f"{row.title}, {row.unit}", *map(cell, spreads)]))
    return "\n".join(lines)


def page(results: Results, about: Mapping[str, str], measured: str) -> str:
    """Everything: a table and a sentence for each part, under what was measured where."""
    parts = dict.fromkeys(row.part for row in results.values)
    sections = [
        f"## {part}\n\n{about.get(part, '')}\n\n"
        + table(results, [row for row in results.values if row.part == part])
        for part in parts
    ]
    return "\n\n".join(["# headway beside its peers", measured, *sections]) + "\n"


def cell(spread: Spread | None) -> str:
    """The median, and the range if there is one."""
    if spread is None:
        return "–"
    median = number(spread.median)
    if spread.count == 1:
        return median
    return f"{median} ({number(spread.low)}–{number(spread.high)})"


def number(value: float) -> str:
    """Three digits, or all of them before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def as_json(results: Results, around: Mapping[str, Any]) -> dict[str, Any]:
    """Every value measured, beside what else is to be known."""
    rows = [
        {
            "part": row.part,
            "title": row.title,
            "unit": row.unit,
            "subjects": {name: _measured(values) for name, values in by_subject.items()},
        }
        for row, by_subject in results.values.items()
    ]
    return {**around, "rows": rows}


def from_json(document: Mapping[str, Any]) -> Results:
    """The results that a document was made of."""
    results = Results()
    for line in document["rows"]:
        row = Row(line["part"], line["title"], line["unit"])
        for name, measured in line["subjects"].items():
            for value in measured["values"]:
                results.add(row, name, value)
    return results


def between_markers(text: str, put: str) -> str:
    """*text* with what is between the two markers replaced by *put*."""
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise MarkersMissing(f"no place for the table: write {BEGIN} and {END} where it belongs")
    return f"{before}{BEGIN}\n{put}\n{END}{after}"


def _measured(values: list[float]) -> Mapping[str, Any]:
    spread = Spread.of(values)
    return {"median": spread.median, "low": spread.low, "high": spread.high, "values": values}


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
