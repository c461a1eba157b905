"""Who takes part at which size."""

from __future__ import annotations

from benchmarks.comparison.schedules import MOST, MOST_REGISTERED, everybody, within
from benchmarks.comparison.subjects import headway


def names(schedules: int, due: int) -> list[str]:
    return [one.name for one in within(schedules, MOST[due], everybody())]


def test_everybody_takes_part_while_it_takes_seconds() -> None:
    assert names(1_000, 1_000) == ["headway", "PgQueuer", "Procrastinate", "APScheduler 3"]
    assert names(10_000, 1_000) == ["headway", "APScheduler 3"]
    assert names(1_000_000, 100) == ["headway"]


def test_sqlite_is_spared_a_million() -> None:
    both = [headway(), headway(on_sqlite=True)]
    assert within(100_000, MOST_REGISTERED, both) == both
    assert within(1_000_000, MOST_REGISTERED, both) == both[:1]
