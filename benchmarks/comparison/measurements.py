"""What was measured, and what three measurements say together."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

COLUMNS = ("headway", "PgQueuer", "Procrastinate", "APScheduler 3")


@dataclass(frozen=True)
class Row:
    """One line of the table: what is measured, and in what."""

    part: str
    title: str
    unit: str


@dataclass(frozen=True)
class Spread:
    """The median of some measurements, and how far they lie apart."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of *values*; there is at least one."""
        return cls(statistics.median(values), min(values), max(values), len(values))


@dataclass
class Results:
    """Every measurement, by row and by who was measured, in the order in which they came."""

    values: dict[Row, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, row: Row, subject: str, value: float) -> None:
        """Note one more measurement of *subject*."""
        self.values.setdefault(row, {}).setdefault(subject, []).append(value)

    def spread(self, row: Row, subject: str) -> Spread | None:
        """What the measurements of *subject* say, if there are any."""
        values = self.values.get(row, {}).get(subject)
        return Spread.of(values) if values else None

    def subjects(self, rows: Iterable[Row]) -> list[str]:
        """Everybody who was measured in *rows*, in an order that is the same in all tables."""
        there = {name for row in rows for name in self.values[row]}
        return sorted(there, key=lambda name: (_place(name), name))


def _place(name: str) -> int:
    return COLUMNS.index(name) if name in COLUMNS else len(COLUMNS)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least *share* of all values do not exceed."""
    ordered = sorted(values)
    needed = -(-len(ordered) * share // 1)  # rounded up
    return ordered[max(0, int(needed) - 1)]
