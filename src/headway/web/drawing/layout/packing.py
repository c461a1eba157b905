"""Parts that are not connected: which they are, and how they lie beside one another."""

from collections.abc import Callable, Sequence
from math import ceil, sqrt

from headway.web.drawing.layout.layering import Edge

Place = tuple[float, float]

SHAPE = 1.7
"""How much wider than high a picture should be."""


def components(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """The connected parts, each in order, the one with the first node first.

    >>> components(4, [(0, 2)])
    [[0, 2], [1], [3]]
    """
    beside: list[list[int]] = [[] for _ in range(count)]
    for tail, head in edges:
        beside[tail].append(head)
        beside[head].append(tail)
    seen = [False] * count
    found = []
    for start in range(count):
        if seen[start]:
            continue
        seen[start] = True
        part = [start]
        for node in part:
            for other in beside[node]:
                if not seen[other]:
                    seen[other] = True
                    part.append(other)
        found.append(sorted(part))
    return found


def shelves(boxes: Sequence[tuple[float, float]], gap: float) -> list[Place]:
    """Where each box (width, height) goes: in rows, one beside the other, as they come.

    The rows are as wide as it takes to show the whole as large as possible.

    >>> shelves([(100, 50)] * 4, gap=10)
    [(0.0, 0.0), (110.0, 0.0), (0.0, 60.0), (110.0, 60.0)]
    """
    if not boxes:
        return []
    widest = max(width for width, _ in boxes)
    area = sum((width + gap) * (height + gap) for width, height in boxes)
    rooms = {max(widest, sqrt(area * SHAPE) * tenths / 10) for tenths in range(8, 18)}
    return min((_shelved(boxes, gap, room) for room in sorted(rooms)), key=_largest_side(boxes))


def _largest_side(boxes: Sequence[tuple[float, float]]) -> Callable[[list[Place]], float]:
    """What decides how small a picture has to be drawn to fit its frame."""

    def measured(places: list[Place]) -> float:
        pairs = list(zip(boxes, places, strict=True))
        across = max(x + width for (width, _), (x, _) in pairs)
        down = max(y + height for (_, height), (_, y) in pairs)
        return max(across / SHAPE, down)

    return measured


def _shelved(boxes: Sequence[tuple[float, float]], gap: float, room: float) -> list[Place]:
    places, x, y, row = [], 0.0, 0.0, 0.0
    for width, height in boxes:
        if x and x + width > room:
            x, y, row = 0.0, y + row + gap, 0.0
        places.append((x, y))
        x, row = x + width + gap, max(row, height)
    return places


def grid_columns(count: int, cell: tuple[float, float], width: float) -> int:
    """How many cells of a grid lie side by side: as wide as what is above, or well shaped.

    >>> grid_columns(10, (100, 50), width=0)
    3
    """
    shaped = ceil(sqrt(count * SHAPE * cell[1] / cell[0]))
    return max(1, min(count, max(shaped, int(width // cell[0]))))
