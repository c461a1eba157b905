"""The dependency graph as the read side tells it, turned into boxes to draw."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from fastapi import Request
from markupsafe import Markup

from headway.domain.views import Graph, GraphNode, GroupOverview, NodeState
from headway.web.drawing.graph import Node, graph_height, graph_nodes, graph_picture
from headway.web.drawing.words import compact, counted
from headway.web.rendering import url

MOST_NODES = 500
MOST_BESIDE = 200
MOST_AROUND = 30
# A row of boxes with their margins; two rows need a frame of the usual height.
LOW = 160


@dataclass(frozen=True)
class Drawing:
    """A graph on a page; *about* names the node the page is about.

    >>> Drawing(request, history.groups.graph()).picture  # doctest: +SKIP
    """

    request: Request
    graph: Graph
    about: str | None = None

    @property
    def picture(self) -> Markup:
        """The whole picture."""
        return graph_picture(self._nodes, self._edges, self._label)

    @property
    def nodes(self) -> Markup:
        """The boxes alone, as they stand now."""
        return graph_nodes(self._nodes, self._edges)

    @property
    def low(self) -> bool:
        """Whether it needs no more than a low frame: one row of boxes."""
        return graph_height(self._nodes, self._edges) <= LOW

    @cached_property
    def _nodes(self) -> list[Node]:
        link = (_group_link if self._of_groups else _manifest_link)(self.request)
        ordered = sorted(self.graph.nodes, key=lambda node: natural(node.name))
        return [_node(one, link, self.about) for one in ordered]

    @property
    def _edges(self) -> list[tuple[str, str]]:
        return [(edge.parent, edge.child) for edge in self.graph.edges]

    @property
    def _of_groups(self) -> bool:
        return any(node.holds is not None for node in self.graph.nodes)

    @property
    def _label(self) -> str:
        return "Which groups run after which" if self._of_groups else "What runs after what"


def natural(name: str) -> str:
    """What to sort names by, so that numbers in them come in their order.

    >>> sorted(["load-10", "load-9"], key=natural)
    ['load-9', 'load-10']
    """
    return re.sub(r"\d+", lambda found: found.group().zfill(12), name)


Link = Callable[[str], str]


def _group_link(request: Request) -> Link:
    return lambda name: url(request, "/groups", name)


def _manifest_link(request: Request) -> Link:
    return lambda name: url(request, "/manifests", name)


def _node(node: GraphNode, link: Link, about: str | None) -> Node:
    here = node.name == about
    if node.holds is None:
        word = _MANIFEST_WORDS.get(node.state, str(node.state))
        return Node(node.name, node.state, link(node.name), word, node.group or "", here=here)
    held = node.holds
    slots = (held.active, held.max_active_jobs)
    word, aside = group_words(held)
    return Node(node.name, node.state, link(node.name), word, aside, slots, here)


_MANIFEST_WORDS = {NodeState.FAILED: "dead letter", NodeState.QUEUED: "waiting"}


def group_words(group: GroupOverview) -> tuple[str, str]:
    """How a group stands in a word or two, and what else is worth knowing.

    >>> busy = GroupOverview("etl", 4, 0, True, manifests=9, queued=12, active=3, completed=0,
    ...     failed=0, dead_letters=2)
    >>> group_words(busy)
    ('3 running', '12 waiting · 2 dead')
    """
    waiting = f"{compact(group.queued)} waiting"
    said = {
        NodeState.RUNNING: f"{compact(group.active)} running",
        NodeState.FAILED: counted(group.dead_letters, "dead letter"),
        NodeState.QUEUED: waiting,
    }.get(group.state, str(group.state))
    beside = [waiting] if group.queued and group.state is not NodeState.QUEUED else []
    if group.dead_letters and group.state is not NodeState.FAILED:
        beside.append(f"{compact(group.dead_letters)} dead")
    if not group.enabled and group.state is not NodeState.DISABLED:
        beside.append("off")
    return said, " · ".join(beside)
