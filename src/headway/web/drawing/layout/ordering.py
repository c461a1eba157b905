"""The order within columns: few edges cross when everyone is level with its neighbours."""

from bisect import bisect_right, insort
from itertools import groupby

from headway.web.drawing.layout.columns import Columns

SWEEPS = 16
PATIENCE = 4


def order(made: Columns) -> None:
    """Reorder each column until sweeping over them does not take away crossings any more.

    >>> made = Columns(4, [[0, 1], [2, 3]], [[], [], [1], [0]], [[3], [2], [], []])
    >>> order(made)
    >>> made.columns
    [[0, 1], [3, 2]]
    """
    best, fewest, patience = made.columns, crossings(made), PATIENCE
    for sweep in range(SWEEPS):
        # Both ways at least once: without crossings a bend may still lie far from its neighbours.
        if not patience or (not fewest and sweep >= 2):
            break
        made.columns = [list(column) for column in made.columns]
        _sweep(made, rightwards=sweep % 2 == 0)
        now = crossings(made)
        patience = PATIENCE if now < fewest else patience - 1
        if now <= fewest:
            best, fewest = made.columns, now
    made.columns = best


def crossings(made: Columns) -> int:
    """How many pairs of edges cross between neighbouring columns.

    >>> crossings(Columns(4, [[0, 1], [2, 3]], [[], [], [1], [0]], [[3], [2], [], []]))
    1
    """
    at = _positions(made.columns)
    total = 0
    for column in made.columns[:-1]:
        passed: list[int] = []
        for place in column:
            heads = sorted(at[head] for head in made.after[place])
            total += sum(len(passed) - bisect_right(passed, head) for head in heads)
            for head in heads:
                insort(passed, head)
    return total


def _sweep(made: Columns, rightwards: bool) -> None:
    """Sort each column by where its neighbours on the side we come from are, on average."""
    at = _positions(made.columns)
    neighbours = made.before if rightwards else made.after
    for column in made.columns if rightwards else reversed(made.columns):
        weights = {}
        for place in column:
            others = neighbours[place]
            weights[place] = (
                sum(at[other] for other in others) / len(others) if others else float(at[place])
            )
        column.sort(key=lambda place: (weights[place], at[place]))
        column[:] = _bends_amid(made, column, weights)
        for index, place in enumerate(column):
            at[place] = index


def _bends_amid(made: Columns, column: list[int], weights: dict[int, float]) -> list[int]:
    """Among places of equal weight bends lie in the middle, where what they lead to will be."""
    arranged: list[int] = []
    for _, run in groupby(column, key=weights.__getitem__):
        tied = list(run)
        nodes = [place for place in tied if not made.is_bend(place)]
        bends = [place for place in tied if made.is_bend(place)]
        half = len(nodes) // 2
        arranged += [*nodes[:half], *bends, *nodes[half:]]
    return arranged


def _positions(columns: list[list[int]]) -> list[int]:
    at = [0] * sum(map(len, columns))
    for column in columns:
        for index, place in enumerate(column):
            at[place] = index
    return at
