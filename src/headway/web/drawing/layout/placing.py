"""How far down each place is: as level with its neighbours as the order and the gaps allow."""

from itertools import accumulate, pairwise

from headway.web.drawing.layout.columns import Columns

ROUNDS = 6
_STIFF = 4.0
_LOOSE = 0.05


def place(made: Columns, node_height: float, gap: float) -> list[float]:
    """The middle of each place, such that those of one column keep their order and distance.

    >>> place(Columns(3, [[0], [1, 2]], [[], [0], [0]], [[1, 2], [], []]), 40, 10)
    [25.0, 0.0, 50.0]
    """
    steps = [_steps(made, column, node_height, gap) for column in made.columns]
    middle = [0.0] * sum(map(len, made.columns))
    for column, step in zip(made.columns, steps, strict=True):
        for one, down in zip(column, step, strict=True):
            middle[one] = down - step[-1] / 2
    for turn in range(ROUNDS):
        _pull(made, steps, middle, [made.before] if turn % 2 == 0 else [made.after])
    _pull(made, steps, middle, [made.before, made.after])
    highest = min(middle, default=0.0)
    return [one - highest for one in middle]


def _steps(made: Columns, column: list[int], node_height: float, gap: float) -> list[float]:
    """How far down each place of a column is at least, seen from the first."""
    heights = [0.0 if made.is_bend(one) else node_height for one in column]
    apart = (gap + (above + below) / 2 for above, below in pairwise(heights))
    return list(accumulate(apart, initial=0.0))


def _pull(
    made: Columns, steps: list[list[float]], middle: list[float], sides: list[list[list[int]]]
) -> None:
    rightwards = sides[0] is made.before
    numbered = list(zip(made.columns, steps, strict=True))
    for column, step in numbered if rightwards else reversed(numbered):
        wishes, weights = [], []
        for one in column:
            near = [middle[other] for side in sides for other in side[one]]
            wishes.append(sum(near) / len(near) if near else middle[one])
            weights.append(_weight(made, one, len(near)))
        for one, down in zip(column, _nearest(wishes, weights, step), strict=True):
            middle[one] = down


def _weight(made: Columns, one: int, neighbours: int) -> float:
    """Bends keep long edges straight; a place without a neighbour makes way for the others."""
    if not neighbours:
        return _LOOSE
    return _STIFF if made.is_bend(one) else 1.0


def _nearest(wishes: list[float], weights: list[float], steps: list[float]) -> list[float]:
    """The positions nearest to the wishes (least squares) that keep the steps.

    Without the steps it is the wish for positions that never fall: whoever would is pooled with
    those before it at their common mean.
    """
    pools: list[tuple[float, float, int]] = []
    for wish, weight, step in zip(wishes, weights, steps, strict=True):
        mean, total, size = wish - step, weight, 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean = (mean * total + before * heavy) / (total + heavy)
            total, size = total + heavy, size + many
        pools.append((mean, total, size))
    level = [mean for mean, _, size in pools for _ in range(size)]
    return [one + step for one, step in zip(level, steps, strict=True)]
