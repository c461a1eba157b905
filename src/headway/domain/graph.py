"""The graph of dependencies has no cycle, neither among manifests nor among their groups.

Linear and without recursion: a chain may have 100,000 links.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headway.errors import CircularDependencyError

Arrow = tuple[str, str]
Neighbours = defaultdict[str, list[str]]


class Edge(NamedTuple):
    """*child* runs after *parent*; both are external ids.

    >>> Edge(parent="extract", child="load").child
    'load'
    """

    parent: str
    child: str


def check_acyclic(groups: Mapping[str, str], edges: Iterable[Edge]) -> None:
    """Refuse edges by which manifests, or the groups they are in, would wait for one another.

    *groups* maps each external id to its group; an edge with an end that is not there counts
    among the manifests only. Edges inside one group are fine, unless the manifests themselves go
    in a circle. Groups are looked at first: a circle of manifests across groups names the groups.

    >>> check_acyclic({"a": "x", "b": "y"}, [Edge("a", "b")])
    >>> try:
    ...     check_acyclic({"a": "x", "b": "y", "c": "x"}, [Edge("a", "b"), Edge("b", "c")])
    ... except CircularDependencyError as error:
    ...     error.members
    ('x', 'y')
    """
    edges = list(edges)
    ends = ((groups.get(parent), groups.get(child)) for parent, child in edges)
    between = {(above, below) for above, below in ends if above and below and above != below}
    check_no_cycle("manifest groups", between)
    check_no_cycle("manifests", edges)


def check_no_cycle(kind: str, arrows: Iterable[Arrow]) -> None:
    """Refuse *arrows* that lead in a circle; *kind* says what they lead between.

    >>> check_no_cycle("manifests", [("extract", "load")])
    """
    if members := on_cycles(arrows):
        raise CircularDependencyError(kind, members)


def on_cycles(arrows: Iterable[Arrow]) -> set[str]:
    """Return every node from which some path of *arrows* leads back to it.

    What lies only before, behind or between cycles is not among them.

    >>> sorted(on_cycles([("a", "b"), ("b", "a"), ("b", "c"), ("d", "d")]))
    ['a', 'b', 'd']
    """
    left = _without_beginnings(list(arrows))
    loops = {tail for tail, head in left if tail == head}
    return loops.union(*(part for part in _strong_components(left) if len(part) > 1))


def _without_beginnings(arrows: Sequence[Arrow]) -> list[Arrow]:
    """Take away, again and again, nodes no arrow leads to (Kahn): of a graph without cycles, all.

    Not needed for the answer, but nearly every graph asked about has no cycle, and this sees it
    much sooner than a search for components would.
    """
    ahead = _neighbours(arrows)
    arriving = Counter(head for _, head in arrows)
    beginnings = [node for node in ahead if node not in arriving]
    while beginnings:
        for node in ahead[beginnings.pop()]:
            arriving[node] -= 1
            if not arriving[node] and node in ahead:
                beginnings.append(node)
    return [(tail, head) for tail, head in arrows if arriving[tail]]


def _strong_components(arrows: Sequence[Arrow]) -> Iterator[list[str]]:
    """Kosaraju's algorithm: the sets of nodes that all lead to one another."""
    ahead = _neighbours(arrows)
    seen: set[str] = set()
    finished = [node for start in list(ahead) for node in _newly_reached(start, ahead, seen)]
    back = _neighbours((head, tail) for tail, head in arrows)
    seen.clear()
    for start in reversed(finished):
        yield _newly_reached(start, back, seen)


def _newly_reached(start: str, graph: Neighbours, seen: set[str]) -> list[str]:
    """Add what *start* leads to, itself included, to *seen*; return it, the deepest first."""
    if start in seen:
        return []
    seen.add(start)
    finished = []
    path = [(start, iter(graph[start]))]
    while path:
        node, rest = path[-1]
        for following in rest:
            if following not in seen:
                seen.add(following)
                path.append((following, iter(graph[following])))
                break
        else:
            finished.append(node)
            path.pop()
    return finished


def _neighbours(arrows: Iterable[Arrow]) -> Neighbours:
    graph: Neighbours = defaultdict(list)
    for tail, head in arrows:
        graph[tail].append(head)
    return graph
