"""The dependency graph as a picture: boxes with links, and lines from parents to children."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from headway.web.drawing.icons import icon
from headway.web.drawing.layout import Layout, Size, lay_out
from headway.web.drawing.markup import columns_of, element, joined, number, shortened, title
from headway.web.drawing.occupancy import occupancy_cells, slots_text
from headway.web.drawing.words import counted, state_class

MARGIN = 20
PADDING = 14
WITH_SLOTS = Size(228, 78, gap_across=72, gap_down=18)
PLAIN = Size(196, 52, gap_across=60, gap_down=14)
_NAME_COLUMN = 8.6
_TEXT_COLUMN = 6.0
_ARROW = 6


@dataclass(frozen=True, slots=True)
class Node:
    """A box: its name, how it stands in a word or two, what else waits, and whose slots are taken.

    ``slots`` are the active ones and the cap; ``here`` marks the one the picture is about.

    >>> Node("users", "running", "/groups/users", word="3 running", slots=(3, 4)).here
    False
    """

    name: str
    state: str
    href: str
    word: str = ""
    aside: str = ""
    slots: tuple[int, int | None] | None = None
    here: bool = False


def graph_picture(nodes: Sequence[Node], edges: Sequence[tuple[str, str]], label: str) -> Markup:
    """The whole graph. *edges* name a parent and its child; those to nodes not here are left out.

    >>> graph_picture([Node("a", "idle", "/a"), Node("b", "idle", "/b")], [("a", "b")], "Groups")
    Markup('<svg class="graph" ... aria-label="Groups: 2 nodes, 1 edge" data-shape=...')
    """
    size, laid = _placed(nodes, edges)
    width, height = laid.width + 2 * MARGIN, laid.height + 2 * MARGIN
    words = f"{label}: {counted(len(nodes), 'node')}, {counted(len(laid.routes), 'edge')}"
    return element(
        "svg",
        element("g", joined(_edges(laid)), class_="graph-edges", aria_hidden="true"),
        element("g", joined(_boxes(nodes, laid, size)), class_="graph-nodes"),
        class_="graph",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="group",
        aria_label=words,
        data_shape=_shape(nodes, laid),
    )


def graph_nodes(nodes: Sequence[Node], edges: Sequence[tuple[str, str]]) -> Markup:
    """The boxes alone, for a page that has the picture and wants to know how they stand now.

    >>> graph_nodes([Node("a", "idle", "/a")], [])
    Markup('<svg class="graph" data-shape="..."><g class="graph-nodes">...</g></svg>')
    """
    size, laid = _placed(nodes, edges)
    boxes = element("g", joined(_boxes(nodes, laid, size)), class_="graph-nodes")
    return element("svg", boxes, class_="graph", data_shape=_shape(nodes, laid))


def graph_height(nodes: Sequence[Node], edges: Sequence[tuple[str, str]]) -> float:
    """How high the picture is, as it is drawn.

    >>> one, two = Node("a", "idle", "/a"), Node("b", "idle", "/b")
    >>> graph_height([one], []) == graph_height([one, two], [("a", "b")])
    True
    """
    return _placed(nodes, edges)[1].height + 2 * MARGIN


def _placed(nodes: Sequence[Node], edges: Sequence[tuple[str, str]]) -> tuple[Size, Layout]:
    size = WITH_SLOTS if any(node.slots for node in nodes) else PLAIN
    numbers = {node.name: index for index, node in enumerate(nodes)}
    known = [(numbers[a], numbers[b]) for a, b in edges if a in numbers and b in numbers]
    return size, _laid_out(len(nodes), tuple(known), size)


@lru_cache(maxsize=16)
def _laid_out(count: int, edges: tuple[tuple[int, int], ...], size: Size) -> Layout:
    """Pages ask again every few seconds, and the layout follows from the structure alone."""
    return lay_out(count, edges, size)


def _shape(nodes: Sequence[Node], laid: Layout) -> str:
    """What stays the same as long as no box moves."""
    digest = hashlib.sha256(repr(sorted(laid.routes)).encode())
    for node in nodes:
        digest.update(repr(node.name).encode())
    return digest.hexdigest()[:16]


def _edges(laid: Layout) -> list[Markup]:
    return [
        element("path", class_="edge", d=_path(points), data_from=tail, data_to=head)
        for (tail, head), points in laid.routes.items()
    ]


def _path(points: list[tuple[float, float]]) -> str:
    """A smooth line across each gap, level past each column, and an arrow head at its end."""
    spots = [(x + MARGIN, y + MARGIN) for x, y in points]
    pieces = [f"M{number(spots[0][0])} {number(spots[0][1])}"]
    for index in range(1, len(spots)):
        (x, y), (to_x, to_y) = spots[index - 1], spots[index]
        if index % 2 == 0 or abs(to_y - y) < 0.5:
            pieces.append(f"L{number(to_x)} {number(to_y)}")
        else:
            bend = (to_x - x) / 2
            pieces.append(
                f"C{number(x + bend)} {number(y)} {number(to_x - bend)} {number(to_y)} "
                f"{number(to_x)} {number(to_y)}"
            )
    (before, _), (x, y) = spots[-2], spots[-1]
    back = x - _ARROW if x >= before else x + _ARROW
    pieces.append(f"M{number(back)} {number(y - 4)}L{number(x)} {number(y)}")
    pieces.append(f"L{number(back)} {number(y + 4)}")
    return "".join(pieces)


def _boxes(nodes: Sequence[Node], laid: Layout, size: Size) -> list[Markup]:
    return [
        _box(index, node, (x + MARGIN, y + MARGIN), size)
        for index, (node, (x, y)) in enumerate(zip(nodes, laid.corners, strict=True))
    ]


def _box(index: int, node: Node, corner: tuple[float, float], size: Size) -> Markup:
    inner = size.width - 2 * PADDING
    name = shortened(node.name, int(inner / _NAME_COLUMN))
    return element(
        "a",
        title(_words(node)),
        _frame(size),
        element("text", name, class_="node-name", x=PADDING, y=22),
        *_line(node, inner),
        *_slots(node, inner),
        class_=f"node {state_class(node.state)}{' node-here' if node.here else ''}",
        href=node.href,
        transform=f"translate({number(corner[0])} {number(corner[1])})",
        data_node=index,
        data_name=node.name,
    )


@lru_cache(maxsize=8)
def _frame(size: Size) -> Markup:
    return joined(
        [
            element("rect", class_="node-box", width=size.width, height=size.height, rx=8),
            element("rect", class_="node-band", y=8, width=4, height=size.height - 16, rx=2),
        ]
    )


def _line(node: Node, inner: float) -> list[Markup]:
    """The state as icon and word at the left; what else there is at the right, if it fits."""
    said = node.word or node.state
    pieces = [_sign(node.state), element("text", said, class_="node-word", x=PADDING + 17, y=41)]
    room = int((inner - 17) / _TEXT_COLUMN) - columns_of(said) - 1
    if node.aside and room >= 3:
        pieces.append(_aside(shortened(node.aside, room), inner, 41))
    return pieces


def _aside(text: str, inner: float, y: float) -> Markup:
    return element("text", text, class_="node-aside", x=PADDING + inner, y=y, text_anchor="end")


@lru_cache(maxsize=32)
def _sign(state: str) -> Markup:
    return icon(state, PADDING, 31)


def _slots(node: Node, inner: float) -> list[Markup]:
    return [] if node.slots is None else [_bar(*node.slots, inner)]


@lru_cache(maxsize=512)
def _bar(active: int, cap: int | None, inner: float) -> Markup:
    beside = slots_text(active, cap) if cap is not None else "no cap"
    width = inner - 8 - _TEXT_COLUMN * len(beside)
    return joined(
        [occupancy_cells(active, cap, place=(PADDING, 58, width)), _aside(beside, inner, 66)]
    )


def _words(node: Node) -> str:
    said = [node.name, node.word or node.state]
    said += [node.aside] if node.aside else []
    if node.slots is not None and node.slots[1] is not None:
        said.append(f"{node.slots[0]} of {node.slots[1]} slots taken")
    return "\n".join(said)
