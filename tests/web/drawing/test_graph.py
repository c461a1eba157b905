"""The picture of the graph: every node is a link with its state, and hostile names stay names."""

import re

import pytest

from headway.web.drawing.graph import Node, graph_height, graph_nodes, graph_picture
from headway.web.drawing.icons import icon
from tests.web.drawing.pictures import HOSTILE, classed, elements, harmless, parsed, size, texts

GROUPS = [
    Node("extract", "running", "/groups/extract", "3 running", "12 waiting · 2 dead", (3, 4)),
    Node("load", "disabled", "/groups/load", slots=(0, None), here=True),
    Node("a-group-with-a-very-long-name-indeed-17", "idle", "/groups/long", slots=(0, 2)),
]
EDGES = [("extract", "load"), ("extract", "nobody")]


def test_each_node_is_a_link_with_name_state_and_full_title() -> None:
    picture = graph_picture(GROUPS, EDGES, "Groups")
    nodes = classed(picture, "node")
    assert [node.get("href") for node in nodes] == [one.href for one in GROUPS]
    assert "is-running" in nodes[0].attrib["class"]
    assert "node-here" in nodes[1].attrib["class"]
    assert {"extract", "3 running", "12 waiting · 2 dead", "3/4", "no cap"} <= set(texts(picture))
    titles = ["".join(one.itertext()) for one in elements(picture, "title")]
    assert titles[2].startswith(GROUPS[2].name)


def test_an_edge_to_a_node_that_is_not_shown_is_left_out() -> None:
    [edge] = classed(graph_picture(GROUPS, EDGES, "Groups"), "edge")
    assert (edge.get("data-from"), edge.get("data-to")) == ("0", "1")


def test_a_title_says_everything_about_its_node() -> None:
    titles = ["".join(one.itertext()) for one in elements(graph_nodes(GROUPS, EDGES), "title")]
    assert titles == [
        "extract\n3 running\n12 waiting · 2 dead\n3 of 4 slots taken",
        "load\ndisabled",
        f"{GROUPS[2].name}\nidle\n0 of 2 slots taken",
    ]


def test_a_picture_says_how_much_is_in_it() -> None:
    picture = parsed(graph_picture(GROUPS, EDGES, "Groups"))
    assert picture.get("aria-label") == "Groups: 3 nodes, 1 edge"
    assert picture.get("viewBox") == f"0 0 {picture.get('width')} {picture.get('height')}"
    assert picture.get("height") == f"{graph_height(GROUPS, EDGES):g}"


def test_a_node_without_slots_is_smaller_and_has_no_bar() -> None:
    plain = graph_nodes([Node("load", "idle", "/manifests/load")], [])
    with_slots = graph_nodes([Node("load", "idle", "/groups/load", slots=(0, 2))], [])
    [small], [large] = classed(plain, "node-box"), classed(with_slots, "node-box")
    assert (small.get("width"), small.get("height")) == ("196", "52")
    assert (large.get("width"), large.get("height")) == ("228", "78")
    assert classed(plain, "slot") == [] and len(classed(with_slots, "slot")) == 2


def test_what_stands_beside_the_word_is_left_out_or_shortened_to_fit() -> None:
    def asides(word: str, aside: str) -> list[str | None]:
        made = graph_nodes([Node("load", "idle", "/load", word, aside)], [])
        return [one.text for one in classed(made, "node-aside")]

    assert asides("idle", "nightly") == ["nightly"]
    assert asides("idle", "a group with a long name of its own") == ["a group w…of its own"]
    assert asides("a word that is almost wide", "nightly") == []


def test_a_node_has_the_sign_of_its_state() -> None:
    def sign(state: str) -> str:
        return str(parsed(icon(state, 1, 2)).get("d"))

    same = [
        ("running", "in_progress"),
        ("failed", "dead_letter"),
        ("disabled", "cancelled"),
        ("queued", "pending", "waiting"),
        ("completed",),
        ("handed_back",),
        ("idle", "unheard of"),
    ]
    signs = [{sign(state) for state in states} for states in same]
    assert all(len(one) == 1 for one in signs)
    assert len(set.union(*signs)) == len(same)
    [drawn] = classed(graph_nodes([Node("load", "failed", "/load")], []), "node-icon")
    assert drawn.get("d") == sign("failed")


def test_an_edge_runs_from_the_right_of_its_parent_to_an_arrow_at_the_left_of_its_child() -> None:
    nodes = [Node("a", "idle", "/a"), Node("b", "idle", "/b"), Node("c", "idle", "/c")]
    [straight] = classed(graph_picture(nodes[:2], [("a", "b")], "Groups"), "edge")
    assert straight.get("d") == "M216 46L276 46M270 42L276 46L270 50"
    bent, _ = classed(graph_picture(nodes, [("a", "b"), ("a", "c")], "Groups"), "edge")
    assert bent.get("d") == "M216 79C246 79 246 46 276 46M270 42L276 46L270 50"


def test_everything_is_inside_the_picture() -> None:
    picture = graph_picture(GROUPS, EDGES, "Groups")
    _, _, width, height = map(float, parsed(picture).attrib["viewBox"].split())
    for node in classed(picture, "node"):
        x, y = map(float, re.findall(r"[\d.]+", node.attrib["transform"]))
        for box in node.iter("rect"):
            right = x + float(box.get("x", 0)) + size(box, "width")
            bottom = y + float(box.get("y", 0)) + size(box, "height")
            assert 0 <= x <= right <= width
            assert 0 <= y <= bottom <= height


def test_a_change_of_state_does_not_change_the_shape_but_a_new_edge_does() -> None:
    before = parsed(graph_picture(GROUPS, EDGES, "Groups")).get("data-shape")
    calm = [Node(one.name, "idle", one.href, slots=one.slots) for one in GROUPS]
    assert parsed(graph_nodes(calm, EDGES)).get("data-shape") == before
    more = [*EDGES, ("load", GROUPS[2].name)]
    assert parsed(graph_nodes(calm, more)).get("data-shape") != before
    others = [Node(f"{one.name}-2", "idle", one.href, slots=one.slots) for one in GROUPS]
    assert parsed(graph_nodes(others, [])).get("data-shape") != before
    assert parsed(graph_nodes(others, [])).get("data-shape") != (
        parsed(graph_nodes(calm, [])).get("data-shape")
    )


def test_nodes_alone_are_the_same_as_in_the_picture() -> None:
    assert (
        str(graph_nodes(GROUPS, EDGES)).split("graph-nodes")[1]
        == (str(graph_picture(GROUPS, EDGES, "Groups")).split("graph-nodes")[1])
    )


def test_a_graph_without_nodes_is_an_empty_picture() -> None:
    assert classed(graph_picture([], [], "Groups"), "node") == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_names(text: str) -> None:
    nodes = [Node(text, text, f"/groups/{text}", text, text, (1, 2)), Node("b", "idle", "/b")]
    picture = graph_picture(nodes, [(text, "b")], text)
    assert harmless(picture)
    assert harmless(graph_nodes(nodes, []))
