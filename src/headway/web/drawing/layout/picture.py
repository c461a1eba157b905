"""The whole layout: parts laid out one by one, packed, and their edges as points."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from headway.web.drawing.layout.columns import Columns, columns
from headway.web.drawing.layout.layering import Edge, layers, without_cycles
from headway.web.drawing.layout.ordering import order
from headway.web.drawing.layout.packing import components, grid_columns, shelves
from headway.web.drawing.layout.placing import place

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Size:
    """How large a node is, and how far from the next: beside it and below it.

    >>> Size(180, 44).gap_across
    64
    """

    width: float
    height: float
    gap_across: float = 64
    gap_down: float = 14
    gap_between: float = 40


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is: the upper left corner of each node, and the points of each edge.

    Between the points of an even and the following odd index an edge runs across a gap; from an
    odd one to the next it runs level past a column.
    """

    width: float
    height: float
    corners: list[Point]
    routes: dict[Edge, list[Point]]


def lay_out(count: int, edges: Sequence[Edge], size: Size) -> Layout:
    """Place the nodes ``0 … count-1`` of which each edge names the one before and the one after.

    >>> made = lay_out(2, [(0, 1)], Size(100, 40, gap_across=50))
    >>> made.corners, made.routes[0, 1], made.width
    ([(0.0, 0.0), (150.0, 0.0)], [(100.0, 20.0), (150.0, 20.0)], 250.0)
    """
    edges = sorted({edge for edge in edges if edge[0] != edge[1]})
    parts = components(count, edges)
    joined = [part for part in parts if len(part) > 1]
    alone = [part[0] for part in parts if len(part) == 1]
    pieces = [_piece(part, edges_of, size) for part, edges_of in _split(joined, edges)]
    pieces.sort(key=lambda piece: -piece.height)
    boxes = [(piece.width, piece.height) for piece in pieces]
    corners: list[Point] = [(0.0, 0.0)] * count
    routes: dict[Edge, list[Point]] = {}
    width = height = 0.0
    for piece, (x, y) in zip(pieces, shelves(boxes, size.gap_between), strict=True):
        for node, (left, top) in piece.corners.items():
            corners[node] = (left + x, top + y)
        for edge, points in piece.routes.items():
            routes[edge] = [(left + x, top + y) for left, top in points]
        width, height = max(width, x + piece.width), max(height, y + piece.height)
    top = height + size.gap_between if height else 0.0
    for node, (x, y) in zip(alone, _grid(len(alone), size, width), strict=True):
        corners[node] = (x, top + y)
        width, height = max(width, x + size.width), max(height, top + y + size.height)
    return Layout(width, height, corners, routes)


@dataclass(frozen=True, slots=True)
class _Piece:
    """One connected part, laid out by itself."""

    width: float
    height: float
    corners: dict[int, Point]
    routes: dict[Edge, list[Point]]


def _split(parts: list[list[int]], edges: Sequence[Edge]) -> list[tuple[list[int], list[Edge]]]:
    part_of = {node: index for index, part in enumerate(parts) for node in part}
    split: list[list[Edge]] = [[] for _ in parts]
    for edge in edges:
        split[part_of[edge[0]]].append(edge)
    return list(zip(parts, split, strict=True))


def _piece(nodes: list[int], edges: list[Edge], size: Size) -> _Piece:
    inner = {node: index for index, node in enumerate(nodes)}
    numbered = [(inner[tail], inner[head]) for tail, head in edges]
    forward = without_cycles(len(nodes), numbered)
    layer = layers(len(nodes), forward)
    made = columns(layer, forward)
    order(made)
    middles = place(made, size.height, size.gap_down)
    left = _lefts(made, size)
    corners = {node: (left[layer[index]], middles[index]) for node, index in inner.items()}
    routes = {}
    for edge, wanted, drawn, route in zip(edges, numbered, forward, made.routes, strict=True):
        points = _points(made, route, layer, left, middles, size)
        routes[edge] = points if wanted == drawn else points[::-1]
    return _Piece(left[-1] + size.width, max(middles) + size.height, corners, routes)


def _lefts(made: Columns, size: Size) -> list[float]:
    """Where each column begins; many edges between two columns get more room."""
    lefts = [0.0]
    for column in made.columns[:-1]:
        crowded = sum(len(made.after[one]) for one in column)
        gap = size.gap_across * min(2.5, max(1, crowded / 30))
        lefts.append(lefts[-1] + size.width + gap)
    return lefts


def _points(
    made: Columns,
    route: list[int],
    layer: list[int],
    left: list[float],
    middles: list[float],
    size: Size,
) -> list[Point]:
    column = [layer[route[0]]]
    for before, after in pairwise(route):
        bend = made.is_bend(after) or made.is_bend(before)
        column.append(column[-1] + 1 if bend else layer[after])
    points = []
    for at, one in zip(column, route, strict=True):
        down = middles[one] + size.height / 2
        points += [(left[at], down), (left[at] + size.width, down)]
    return points[1:-1]


def _grid(count: int, size: Size, width: float) -> list[Point]:
    cell = (size.width + size.gap_down * 1.5, size.height + size.gap_down)
    across = grid_columns(count, cell, width) if count else 1
    return [(index % across * cell[0], index // across * cell[1]) for index in range(count)]
