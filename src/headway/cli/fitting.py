"""Which columns of a table a terminal has room for; nothing is cut off without a word."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GAP = 2
# A long text stays readable when its lines are broken at this width.
READABLE = 20


@dataclass(frozen=True)
class Measure:
    """How wide a column is at most, and whether it can be narrower or missing."""

    widest: int
    long: bool = False
    spare: bool = False
    empty: bool = False

    @property
    def least(self) -> int:
        """The width it needs."""
        return min(self.widest, READABLE) if self.long else self.widest


def columns_that_fit(measures: Sequence[Measure], room: int) -> list[int] | None:
    """The numbers of the columns to show; ``None`` if even those that matter are too wide.

    >>> columns_that_fit([Measure(5), Measure(9, spare=True), Measure(9)], room=20)
    [0, 2]
    >>> columns_that_fit([Measure(5), Measure(9)], room=12) is None
    True
    """
    left = list(range(len(measures)))
    for number in _dispensable(measures):
        if _needed(measures, left) <= room:
            break
        left.remove(number)
    return left if _needed(measures, left) <= room else None


def _dispensable(measures: Sequence[Measure]) -> Iterator[int]:
    """First what says nothing, then what can be looked up elsewhere."""
    yield from (number for number, one in enumerate(measures) if one.empty)
    yield from (number for number, one in enumerate(measures) if one.spare and not one.empty)


def _needed(measures: Sequence[Measure], numbers: Sequence[int]) -> int:
    return sum(measures[number].least for number in numbers) + GAP * (len(numbers) - 1)
