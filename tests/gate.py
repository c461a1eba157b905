"""The gate's selection: `pytest` alone runs the gate, `pytest --all` runs every test.

The gate leaves out what a change rarely breaks and what takes long: tests marked `long` or `full`,
and the second database where the subject is neither SQL nor a transaction, or where whole processes
are started. `.ci/full` runs all of it. A run that names paths, a keyword or a mark runs everything
it names.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import hypothesis
import pytest

TESTS = Path(__file__).parent

# The database that the gate leaves out in a folder: where the subject is pages, commands, texts and
# declarations, SQLite is used; where it is processes and threads that share a server, PostgreSQL.
LEFT_OUT_IN_FOLDER = {
    **dict.fromkeys(("cli", "doctor", "federation", "surface", "telemetry", "web"), "postgresql"),
    **dict.fromkeys(("definition", "why"), "postgresql"),
    **dict.fromkeys(("runner", "scenarios", "stories"), "sqlite"),
}
# Files that are about something else than their folder: transactions, user code, rows that cannot
# be read, brokers.
LEFT_OUT_IN_FILE = {
    "definition/test_joining.py": None,
    "definition/test_once.py": None,
    "definition/test_operating.py": "sqlite",
    **dict.fromkeys(
        (f"dispatcher/test_{name}.py" for name in ("edited_rows", "poison", "unreadable_rows")),
        "sqlite",
    ),
    **dict.fromkeys(
        (f"runner/test_{name}.py" for name in ("failing_steps", "isolation", "secrets")),
        "postgresql",
    ),
    **dict.fromkeys(
        (f"runner/test_{name}.py" for name in ("completions", "ownership", "worker_pool")), None
    ),
    "test_executor.py": "sqlite",
    "test_relay.py": "sqlite",
}
# Folders that start browsers and brokers: not in the gate.
LEFT_OUT = ("browser", "servers/celery")


# The test functions of a run before the gate's are picked, and the gate's.
COLLECTED = pytest.StashKey[tuple[frozenset[str], frozenset[str]]]()


def functions_of(items: Iterable[pytest.Item]) -> frozenset[str]:
    """The test functions of items, each with its file."""
    return frozenset(item.nodeid.partition("[")[0] for item in items)


class Selection(StrEnum):
    """Which tests a run of pytest is asked for."""

    GATE = "gate"
    ALL = "all"
    PICKED = "picked"


# Examples that Hypothesis makes up for a property, where the test itself does not set a number.
EXAMPLES = {Selection.GATE: 30, Selection.PICKED: 100, Selection.ALL: 300}


def selection_of(config: pytest.Config) -> Selection:
    """The selection of this run, which pytest-xdist's controller sends to its processes."""
    if hasattr(config, "workerinput"):
        return Selection(config.workerinput["selection"])
    if config.getoption("--all"):
        return Selection.ALL
    picked = config.option.keyword or config.option.markexpr
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return Selection.GATE if whole and not picked else Selection.PICKED


def belongs_to_the_gate(item: pytest.Item) -> bool:
    """Return whether the gate runs this test with these parameters.

    The mark `gate` brings in a test of a folder that is left out, and both databases.
    """
    if item.get_closest_marker("long") or item.get_closest_marker("full"):
        return False
    if item.get_closest_marker("gate"):
        return True
    path = item.path.relative_to(TESTS).as_posix()
    if path.startswith(tuple(f"{folder}/" for folder in LEFT_OUT)):
        return False
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    left_out = LEFT_OUT_IN_FILE.get(path, LEFT_OUT_IN_FOLDER.get(path.partition("/")[0]))
    return left_out is None or left_out not in parameters


def load_profile(selection: Selection) -> None:
    """Choose how many examples Hypothesis makes up.

    No verdict depends on how fast a machine is, not even on how fast it makes up examples, and each
    example that fails is printed with what repeats it.
    """
    hypothesis.settings.register_profile(
        "headway",
        hypothesis.settings(),
        max_examples=EXAMPLES[selection],
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        print_blob=True,
    )
    hypothesis.settings.load_profile("headway")
