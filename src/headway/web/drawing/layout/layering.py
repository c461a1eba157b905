"""Which layer each node is in: behind everything it comes after, and no further than it must."""

from collections import defaultdict
from collections.abc import Sequence
from math import ceil, sqrt

Edge = tuple[int, int]

MOST_IN_A_ROW = 16
"""So many nodes that hang on the same one stay in one layer; more are folded into several."""

_FOLDED_SHAPE = 0.3


def without_cycles(count: int, edges: Sequence[Edge]) -> list[Edge]:
    """The same edges, with those that lead back turned round.

    Dependencies have no cycle; should there be one, it is drawn rather than refused.

    >>> without_cycles(2, [(0, 1), (1, 0)])
    [(0, 1), (0, 1)]
    """
    ahead = _ahead(count, edges)
    begun, ended = [False] * count, [False] * count
    back: set[Edge] = set()
    for start in range(count):
        if begun[start]:
            continue
        begun[start] = True
        path = [(start, iter(ahead[start]))]
        while path:
            node, rest = path[-1]
            following = next(rest, None)
            if following is None:
                ended[node] = True
                path.pop()
            elif not begun[following]:
                begun[following] = True
                path.append((following, iter(ahead[following])))
            elif not ended[following]:
                back.add((node, following))
    return [(head, tail) if (tail, head) in back else (tail, head) for tail, head in edges]


def layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of each node, from zero; every edge leads to a higher one.

    >>> layers(4, [(0, 1), (1, 2), (3, 2)])
    [0, 1, 2, 1]
    """
    order, depth = _by_longest_way(count, edges)
    _pull_towards_children(order, depth, edges)
    _fold(depth, edges)
    lowest = min(depth, default=0)
    return [one - lowest for one in depth]


def _by_longest_way(count: int, edges: Sequence[Edge]) -> tuple[list[int], list[int]]:
    """Nodes with every parent before its children, and the longest way to each."""
    ahead = _ahead(count, edges)
    arriving = [0] * count
    for _, head in edges:
        arriving[head] += 1
    depth = [0] * count
    order = [node for node in range(count) if not arriving[node]]
    for node in order:
        for following in ahead[node]:
            depth[following] = max(depth[following], depth[node] + 1)
            arriving[following] -= 1
            if not arriving[following]:
                order.append(following)
    return order, depth


def _pull_towards_children(order: list[int], depth: list[int], edges: Sequence[Edge]) -> None:
    """Shorten edges: who has more children than parents moves up to the first of them."""
    ahead = _ahead(len(depth), edges)
    parents = [0] * len(depth)
    for _, head in edges:
        parents[head] += 1
    for node in reversed(order):
        if len(ahead[node]) > parents[node]:
            depth[node] = min(depth[following] for following in ahead[node]) - 1


def _fold(depth: list[int], edges: Sequence[Edge]) -> None:
    """Spread many ends of one node over several layers, so that the picture is not all height."""
    below, above = defaultdict(list), defaultdict(list)
    for tail, head in edges:
        below[tail].append(head)
        above[head].append(tail)
    for node in sorted(below):
        leaves = [one for one in below[node] if one not in below and len(above[one]) == 1]
        _spread(leaves, depth, depth[node], 1)
    for node in sorted(above):
        roots = [one for one in above[node] if one not in above and len(below[one]) == 1]
        _spread(roots, depth, depth[node], -1)


def _spread(nodes: list[int], depth: list[int], start: int, direction: int) -> None:
    if len(nodes) <= MOST_IN_A_ROW:
        return
    rows = ceil(len(nodes) / ceil(sqrt(_FOLDED_SHAPE * len(nodes))))
    for index, node in enumerate(nodes):
        depth[node] = start + direction * (1 + index // rows)


def _ahead(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    ahead: list[list[int]] = [[] for _ in range(count)]
    for tail, head in edges:
        ahead[tail].append(head)
    return ahead
