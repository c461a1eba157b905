"""The comparison at a small size, headway alone: every part comes to its figures."""

from __future__ import annotations

import pytest

from benchmarks.comparison.bench import Bench, Sizes
from benchmarks.comparison.idling import statements
from benchmarks.comparison.parts import PARTS, Part
from tests.postgres_server import PostgresServer

SMALL = Sizes(
    repetitions=1,
    jobs=100,
    slow_jobs=100,
    celery_jobs=20,
    samples=5,
    schedules=(1000,),
    children=50,
    aged=1000,
    snapshot_age=0.0,
    idle_seconds=5.0,  # longer than the pulse of an idle process, or there may be nothing to count
)
# How many lines each part adds to the table, and whether SQLite takes part.
FIGURES = {
    "floor": (6, False),
    "enqueue": (2, True),
    "drain": (3, True),
    "sync": (1, False),
    "latency": (2, False),
    "observed": (2, False),
    "ticks": (2, False),
    "registering": (3, True),
    "dependents": (2, False),
    "processes": (3, False),
    "ageing": (3, False),
    "idle": (1, False),
    "celery": (1, False),
}


@pytest.mark.long
@pytest.mark.timeout(600)  # each process that is measured is started anew
@pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
def test_a_part_comes_to_its_figures(part: Part, own_server: PostgresServer) -> None:
    bench = Bench(own_server, SMALL, only=["headway"])
    part.measure(bench)
    rows = bench.results.values
    lines, with_sqlite = FIGURES[part.name]
    assert len(rows) == lines
    assert {row.part for row in rows} == {part.name}
    assert all(value > 0 for by in rows.values() for values in by.values() for value in values)
    assert any("headway on SQLite" in by for by in rows.values()) == with_sqlite


def test_statements_are_counted_in_the_server_s_log_by_database() -> None:
    log = """one LOG:  statement: BEGIN
one LOG:  execute <unnamed>: SELECT 1
one LOG:  execute _pg3_0: UPDATE headway_server
    SET expires_at = now()
one DETAIL:  Parameters: $1 = 'two LOG:  statement: none'
two LOG:  statement: LISTEN headway
one LOG:  statement: COMMIT
 LOG:  checkpoint starting: time
"""
    assert statements(log) == {"one": 2, "two": 1}
