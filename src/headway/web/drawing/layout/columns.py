"""A component as columns of places, with a bend in every column that an edge only passes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headway.web.drawing.layout.layering import Edge

MOST_BENDS = 3_000
"""What a picture with more would show is a thicket; the longest edges then run straight."""


@dataclass(slots=True)
class Columns:
    """Places in columns: the nodes ``0 … count-1`` and, above them, the bends of long edges.

    Edges out of one node share their bends, so that they leave it as one line and part where they
    must. ``routes`` holds for each edge the places it runs through, from its tail to its head.
    """

    count: int
    columns: list[list[int]]
    before: list[list[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    routes: list[list[int]] = field(default_factory=list)

    def is_bend(self, place: int) -> bool:
        """Whether a place is not a node."""
        return place >= self.count


def columns(layer: Sequence[int], edges: Sequence[Edge]) -> Columns:
    """The columns of a component whose nodes are in these layers.

    >>> made = columns([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
    >>> made.columns, made.routes
    ([[0], [1, 3], [2]], [[0, 1], [1, 2], [0, 3, 2]])
    """
    made = Columns(len(layer), [[] for _ in range(max(layer, default=-1) + 1)])
    for node in _families_together(len(layer), edges):
        made.columns[layer[node]].append(node)
    bends: dict[tuple[int, int, int], int] = {}
    folded = _folded_roots(len(layer), edges)
    longest = _longest_with_bends(layer, edges)
    for tail, head in edges:
        route = [tail]
        if layer[head] - layer[tail] <= longest:
            shared = (head, 1) if tail in folded else (tail, 0)
            for column in range(layer[tail] + 1, layer[head]):
                route.append(_bend(made, bends, (*shared, column)))
        made.routes.append([*route, head])
    _connect(made, layer)
    return made


def _bend(made: Columns, bends: dict[tuple[int, int, int], int], key: tuple[int, int, int]) -> int:
    if key not in bends:
        bends[key] = made.count + len(bends)
        made.columns[key[2]].append(bends[key])
    return bends[key]


def _connect(made: Columns, layer: Sequence[int]) -> None:
    """Note who is next to whom in the neighbouring columns, each pair once."""
    places = sum(map(len, made.columns))
    made.before = [[] for _ in range(places)]
    made.after = [[] for _ in range(places)]
    pairs = {
        (tail, head): None
        for route in made.routes
        for tail, head in pairwise(route)
        if made.is_bend(tail) or made.is_bend(head) or layer[head] - layer[tail] == 1
    }
    for tail, head in pairs:
        made.after[tail].append(head)
        made.before[head].append(tail)


def _families_together(count: int, edges: Sequence[Edge]) -> list[int]:
    """Nodes in the order in which a walk from the beginnings meets them first."""
    ahead: list[list[int]] = [[] for _ in range(count)]
    arriving = [0] * count
    for tail, head in edges:
        ahead[tail].append(head)
        arriving[head] += 1
    met: dict[int, None] = {}
    for start in sorted(range(count), key=lambda node: (arriving[node] > 0, node)):
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in met:
                met[node] = None
                waiting += reversed(ahead[node])
    return list(met)


def _folded_roots(count: int, edges: Sequence[Edge]) -> set[int]:
    """Nodes without parents and with one child: what they share with others lies at its child."""
    children, parents = [0] * count, [0] * count
    for tail, head in edges:
        children[tail] += 1
        parents[head] += 1
    return {node for node in range(count) if not parents[node] and children[node] == 1}


def _longest_with_bends(layer: Sequence[int], edges: Sequence[Edge]) -> int:
    """How long an edge may be to still get bends, if all together are not to be too many."""
    room, longest = MOST_BENDS, 1
    for length in sorted(layer[head] - layer[tail] for tail, head in edges):
        room -= length - 1
        if room < 0:
            return longest
        longest = max(longest, length)
    return longest
