"""Which runs can share a line: each takes the first on which nothing runs any more."""

from collections.abc import Sequence
from heapq import heappop, heappush


def lanes(spans: Sequence[tuple[float, float]], gap: float = 0.0) -> list[int]:
    """The line of each span (begin and end); spans on one line are at least *gap* apart.

    There are never more lines than spans that run at once.

    >>> lanes([(0, 5), (2, 3), (4, 9), (5, 6)])
    [0, 1, 1, 0]
    """
    taken: list[tuple[float, int]] = []
    free: list[int] = []
    lines = [0] * len(spans)
    opened = 0
    for index in sorted(range(len(spans)), key=lambda one: (spans[one], one)):
        begin, end = spans[index]
        while taken and taken[0][0] + gap <= begin:
            heappush(free, heappop(taken)[1])
        if free:
            lines[index] = heappop(free)
        else:
            lines[index], opened = opened, opened + 1
        heappush(taken, (end, lines[index]))
    return lines
