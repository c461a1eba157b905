"""Where results are kept, and how the README gets its table from them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.comparison.machine import in_a_sentence
from benchmarks.comparison.measurements import Results
from benchmarks.comparison.progress import say
from benchmarks.comparison.report import as_json, between_markers, from_json, table

RESULTS = Path(__file__).parents[1] / "results"
README = Path(__file__).parents[2] / "README.md"
JSON, MARKDOWN = "latest.json", "latest.md"
# What a reader compares first; README.md has room for these lines and no more.
SHOWN = (
    "bulk enqueue",
    "drain",
    "trigger to start, median",
    "trigger to start, 95th percentile",
    "tick, 1,000 due of 100,000",
    "tick, 1,000 due of 1,000,000",
    "registering 1,000,000",
    "drain after 2,000,000 executions, with an open snapshot",
)
HOW = "[how, and what differs](docs/guides/benchmarks.md)"


def keep(results: Results, around: Mapping[str, Any], text: str, folder: Path = RESULTS) -> None:
    """Write both forms into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKDOWN).write_text(text, "utf-8")
    document = json.dumps(as_json(results, around), indent=1)
    (folder / JSON).write_text(document + "\n", "utf-8")
    say(f"written: {folder / MARKDOWN}, {folder / JSON}")


def put_into_readme(folder: Path = RESULTS, readme: Path = README) -> None:
    """The lines that matter most, from the latest results, between the README's markers."""
    document = json.loads((folder / JSON).read_text("utf-8"))
    results = from_json(document)
    rows = [row for row in results.values if row.title in SHOWN]
    made_by = "make bench-full" if "--full" in document["command"] else "make bench"
    text = f"{table(results, rows)}\n\n`{made_by}` ({HOW}): {in_a_sentence(document)}"
    readme.write_text(between_markers(readme.read_text("utf-8"), text), "utf-8")
    say(f"written: {readme}")
