"""What headway doctor prints of several findings, and what it tells programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import text

from headway.doctor.checks import CHECKS
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.surface.test_cli import CommandLine, assert_brief, headway

__all__ = ["headway"]

APP = """
from headway import Headway

hw = Headway("hello", database_url="sqlite:///hello.db")
"""
PARKED = (
    "INSERT INTO headway_event (event_id, type, resource_id, azolla_id, created_at, attempts,"
    " parked_at, last_error) VALUES ('event-1', 'MANIFEST_REQUESTED', 'hello', 'hello', 0, 5, 0,"
    " 'query_azollas: RuntimeError: no')"
)
CHECK = {one.name: one for one in CHECKS}


@pytest.fixture
def broken(headway: CommandLine) -> Iterator[CommandLine]:
    """A database with a finding that can be repaired and one that a person has to see to."""
    headway.write("hello.py", APP)
    with closing(Store("sqlite:///hello.db")) as store:
        migrate(store)
        with store.writing() as tx:
            for statement in ("DROP INDEX headway_execution_pending", PARKED):
                tx.connection.execute(text(statement))
    yield headway


def test_what_cannot_be_repaired_is_to_do(broken: CommandLine) -> None:
    code, out, err = broken("doctor", "hello:hw")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "warning  parked-events (1)",
        "         These requests for a manifest failed so often that they were put aside.",
        "         - event-1: query_azollas: RuntimeError: no",
        "         to do: do something about the reason, then put them back: headway",
        "           azolla unpark",
        "error    broken-indexes (1)",
        "         These indexes are missing or not used, by which nothing happens twice",
        "         and queries are fast.",
        "         - index headway_execution_pending is missing",
        "         --fix: they are created anew, which keeps writers waiting meanwhile",
        "2 findings: sqlite:///hello.db",
    ]


def test_what_was_repaired_is_told_beside_what_is_left(broken: CommandLine) -> None:
    code, out, _ = broken("doctor", "hello:hw", "--fix")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "warning  parked-events (1)"
    assert lines[-2:] == ["repaired broken-indexes (1)", "1 finding: sqlite:///hello.db"]


def test_programs_are_told_all_of_it(broken: CommandLine) -> None:
    code, out, err = broken("doctor", "--database-url", "sqlite:///hello.db", "--json", "--fix")
    assert (code, err) == (1, "")
    parked = CHECK["parked-events"]
    assert json.loads(out) == {
        "healthy": False,
        "findings": [
            {
                "check": "parked-events",
                "severity": "warning",
                "sentence": parked.sentence,
                "rows": ["event-1: query_azollas: RuntimeError: no"],
                "fix": parked.fix,
                "repairable": False,
            }
        ],
        "repaired": {"broken-indexes": 1},
        "skipped": ["over-limit", "sleeping-too-long", "retention-behind"],
    }


def test_the_settings_are_those_of_the_application(broken: CommandLine) -> None:
    out = broken("doctor", "hello:hw", "--json").out
    assert json.loads(out)["skipped"] == []


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ((), "; name another by --database-url URL or MODULE:APP"),
        (("--database-url", "sqlite:///gone.db"), ""),
        (("hello:hw",), ""),
    ],
    ids=["none named", "an address", "an application"],
)
def test_a_database_that_is_not_there(
    headway: CommandLine, arguments: tuple[str, ...], hint: str
) -> None:
    headway.write("hello.py", APP)
    code, out, err = headway("doctor", *arguments)
    assert (code, out) == (1, "")
    assert err.endswith(f": there is no such file{hint}\n")
    assert_brief(err)
