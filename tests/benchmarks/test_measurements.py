"""What several measurements say together."""

from __future__ import annotations

import pytest

from benchmarks.comparison.measurements import Results, Row, Spread, percentile

DRAIN = Row("drain", "drain", "jobs/s")
TICK = Row("ticks", "tick, 100 due of 1,000", "ms")


def test_a_spread_is_the_median_and_the_range() -> None:
    assert Spread.of([30.0, 10.0, 20.0]) == Spread(median=20.0, low=10.0, high=30.0, count=3)


def test_an_even_number_has_its_median_in_the_middle() -> None:
    assert Spread.of([10.0, 20.0]).median == 15.0


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.95, 95), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: int) -> None:
    assert percentile(range(1, 101), share) == expected


def test_a_percentile_does_not_depend_on_the_order() -> None:
    assert percentile([3, 1, 2], 0.95) == 3


def test_results_keep_every_value_by_row_and_subject() -> None:
    results = Results()
    for value in (2.0, 1.0, 3.0):
        results.add(DRAIN, "headway", value)
    results.add(DRAIN, "PgQueuer", 5.0)
    assert results.values == {DRAIN: {"headway": [2.0, 1.0, 3.0], "PgQueuer": [5.0]}}
    assert results.spread(DRAIN, "headway") == Spread(2.0, 1.0, 3.0, 3)


def test_who_was_not_measured_has_no_spread() -> None:
    results = Results()
    results.add(DRAIN, "headway", 1.0)
    assert results.spread(DRAIN, "PgQueuer") is None
    assert results.spread(TICK, "headway") is None


def test_subjects_come_once_and_in_the_same_order_whoever_was_first() -> None:
    results = Results()
    for name in ("headway on SQLite", "APScheduler 3", "PgQueuer"):
        results.add(TICK, name, 1.0)
    results.add(DRAIN, "headway", 1.0)
    assert results.subjects([TICK]) == ["PgQueuer", "APScheduler 3", "headway on SQLite"]
    assert results.subjects([DRAIN, TICK])[0] == "headway"
