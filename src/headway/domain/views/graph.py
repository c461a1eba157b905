"""The dependency graph of groups, or of manifests."""

from dataclasses import dataclass

from headway.domain.views.groups import GroupOverview
from headway.domain.views.states import NodeState


@dataclass(frozen=True)
class GraphNode:
    """A group, with what it holds, or a manifest, with the name of its group."""

    name: str
    state: NodeState
    group: str | None = None
    holds: GroupOverview | None = None


@dataclass(frozen=True)
class GraphEdge:
    """*child* runs after *parent*; between groups ``weight`` counts the manifests concerned."""

    parent: str
    child: str
    weight: int = 1


@dataclass(frozen=True)
class Graph:
    """Nodes by name, the edges among them, and whether there is more than is shown.

    >>> Graph((), (), truncated=False).nodes
    ()
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    truncated: bool
    around: str | None = None
