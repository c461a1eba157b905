"""Layouts of graphs: nothing overlaps, everything is drawn, edges lead to the right."""

import random
import sys
from itertools import combinations, pairwise
from types import FrameType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.web.drawing.layout import Layout, Size, lay_out
from headway.web.drawing.layout.columns import MOST_BENDS, columns
from headway.web.drawing.layout.layering import MOST_IN_A_ROW, layers, without_cycles
from headway.web.drawing.layout.ordering import crossings, order
from headway.web.drawing.layout.packing import components, grid_columns, shelves
from headway.web.drawing.layout.placing import place

SIZE = Size(100, 40, gap_across=50, gap_down=10)
Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, acyclic: bool = True) -> tuple[int, Edges]:
    count = draw(st.integers(1, 40))
    ends = st.integers(0, count - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=60))
    if acyclic:
        edges = [(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]]
    return count, edges


STAR = (60, [(0, leaf) for leaf in range(1, 60)])
FUNNEL = (60, [(root, 59) for root in range(59)])
CHAIN = (20, [(one, one + 1) for one in range(19)])


def overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return (
        abs(one[0] - other[0]) < SIZE.width - 0.01 and abs(one[1] - other[1]) < SIZE.height - 0.01
    )


def inside(made: Layout, point: tuple[float, float]) -> bool:
    return -0.01 <= point[0] <= made.width + 0.01 and -0.01 <= point[1] <= made.height + 0.01


@given(graphs())
@example(STAR)
@example(FUNNEL)
@example(CHAIN)
def test_no_two_nodes_overlap_and_all_are_inside(graph: tuple[int, Edges]) -> None:
    made = lay_out(*graph, SIZE)
    assert len(made.corners) == graph[0]
    assert not [pair for pair in combinations(made.corners, 2) if overlap(*pair)]
    for x, y in made.corners:
        assert inside(made, (x, y))
        assert inside(made, (x + SIZE.width, y + SIZE.height))


@given(graphs())
@example(STAR)
@example(FUNNEL)
def test_every_edge_is_drawn_from_its_parent_rightwards_to_its_child(
    graph: tuple[int, Edges],
) -> None:
    made = lay_out(*graph, SIZE)
    assert set(made.routes) == set(graph[1])
    for (parent, child), points in made.routes.items():
        (x, y), (to_x, to_y) = made.corners[parent], made.corners[child]
        assert points[0] == pytest.approx((x + SIZE.width, y + SIZE.height / 2))
        assert points[-1] == pytest.approx((to_x, to_y + SIZE.height / 2))
        assert all(before[0] < after[0] for before, after in pairwise(points))
        assert all(inside(made, point) for point in points)


@given(graphs(acyclic=False))
def test_circles_are_drawn_too(graph: tuple[int, Edges]) -> None:
    made = lay_out(*graph, SIZE)
    assert set(made.routes) == {edge for edge in graph[1] if edge[0] != edge[1]}
    assert not [pair for pair in combinations(made.corners, 2) if overlap(*pair)]


@given(graphs())
@example(STAR)
@example(FUNNEL)
def test_a_long_edge_passes_nodes_and_does_not_cross_them(graph: tuple[int, Edges]) -> None:
    made = lay_out(*graph, SIZE)
    for edge, points in made.routes.items():
        for (x, y), (to_x, _) in list(pairwise(points))[1::2]:
            for node, (left, top) in enumerate(made.corners):
                if node not in edge and left <= x and to_x <= left + SIZE.width:
                    assert not top < y < top + SIZE.height


@given(graphs(), st.randoms(use_true_random=False))
def test_the_same_graph_gives_the_same_picture(
    graph: tuple[int, Edges], chance: random.Random
) -> None:
    count, edges = graph
    shuffled = list(edges)
    chance.shuffle(shuffled)
    assert lay_out(count, edges, SIZE) == lay_out(count, shuffled, SIZE)


@given(graphs())
def test_layers_respect_edges_and_begin_at_zero(graph: tuple[int, Edges]) -> None:
    count, edges = graph
    layer = layers(count, edges)
    assert all(layer[parent] < layer[child] for parent, child in edges)
    assert min(layer) == 0


@given(graphs(acyclic=False))
def test_turning_edges_round_leaves_no_cycle(graph: tuple[int, Edges]) -> None:
    count, edges = graph
    forward = without_cycles(count, [edge for edge in edges if edge[0] != edge[1]])
    layer = layers(count, forward)
    assert all(layer[parent] < layer[child] for parent, child in forward)


@given(graphs())
def test_ordering_never_adds_crossings(graph: tuple[int, Edges]) -> None:
    count, edges = graph
    made = columns(layers(count, edges), sorted(set(edges)))
    before, places = crossings(made), [sorted(column) for column in made.columns]
    order(made)
    assert crossings(made) <= before
    assert [sorted(column) for column in made.columns] == places


def test_ordering_keeps_the_best_it_has_seen() -> None:
    """A sweep may make things worse: in many thickets, ordering again never does."""
    chance = random.Random(4)
    for _ in range(30):
        pairs = [(chance.randrange(40), chance.randrange(40)) for _ in range(90)]
        edges = sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]})
        made = columns(layers(40, edges), edges)
        counts = []
        for _ in range(4):
            order(made)
            counts.append(crossings(made))
        assert counts == sorted(counts, reverse=True)


def test_a_tangle_of_two_columns_is_untangled() -> None:
    crossed = [(one, 19 - one) for one in range(10)]
    made = columns(layers(20, crossed), crossed)
    order(made)
    assert crossings(made) == 0


def test_a_small_graph_is_laid_out_level_with_its_neighbours() -> None:
    made = lay_out(4, [(0, 1), (1, 2), (0, 2), (3, 2)], SIZE)
    assert (made.width, made.height) == (400, 100)
    assert made.corners == [(0, 21.25), (150, 0), (300, 30), (150, 60)]
    assert made.routes[0, 2] == [(100, 41.25), (150, 50), (250, 50), (300, 50)]


def test_parts_and_single_nodes_keep_their_distances() -> None:
    size = Size(100, 40, gap_across=50, gap_down=10, gap_between=30)
    made = lay_out(5, [(0, 1), (2, 3)], size)
    assert made.corners == [(0, 0), (150, 0), (0, 70), (150, 70), (0, 140)]
    assert (made.width, made.height) == (250, 180)
    alone = lay_out(3, [], size)
    assert alone.corners == [(0, 0), (115, 0), (0, 50)]
    assert (alone.width, alone.height) == (215, 90)


def test_the_highest_part_comes_first() -> None:
    made = lay_out(6, [(0, 1), (2, 3), (2, 4), (2, 5)], SIZE)
    assert made.corners[3] == (150, 0)
    assert made.corners[0][1] > made.corners[5][1]


def test_more_room_is_kept_where_many_edges_run() -> None:
    few = lay_out(12, [(one, 6 + one) for one in range(6)] + [(0, 7)], SIZE)
    many = lay_out(12, [(one, 6 + other) for one in range(6) for other in range(6)], SIZE)
    assert few.corners[6][0] == 150
    assert many.corners[6][0] == pytest.approx(100 + 50 * 36 / 30)
    most = lay_out(20, [(one, 10 + other) for one in range(10) for other in range(10)], SIZE)
    assert most.corners[10][0] == pytest.approx(100 + 50 * 2.5)


def test_an_edge_that_leads_back_is_drawn_from_its_parent_leftwards() -> None:
    made = lay_out(2, [(0, 1), (1, 0)], SIZE)
    assert made.routes[0, 1] == [(100, 20), (150, 20)]
    assert made.routes[1, 0] == [(150, 20), (100, 20)]


def test_edges_out_of_one_node_share_their_bends() -> None:
    made = columns([0, 1, 2, 3, 3], [(0, 1), (1, 2), (2, 3), (2, 4), (0, 3), (0, 4)])
    assert made.routes[-2:] == [[0, 5, 6, 3], [0, 5, 6, 4]]
    assert made.columns == [[0], [1, 5], [2, 6], [3, 4]]
    assert made.after[0] == [1, 5] and made.before[3] == [2, 6]


def test_edges_of_many_beginnings_into_one_node_share_their_bends() -> None:
    made = columns([0, 1, 0, 2], [(0, 3), (2, 3), (1, 3)])
    assert made.routes == [[0, 4, 3], [2, 4, 3], [1, 3]]


def test_the_longest_edges_run_straight_if_there_were_too_many_bends() -> None:
    count = MOST_BENDS // 2 + 100
    chain = [(one, one + 1) for one in range(count)]
    long = [(0, count), (1, count)]
    made = columns(list(range(count + 1)), [*chain, *long])
    assert made.routes[-2] == [0, count], "the longest"
    assert len(made.routes[-1]) == count, "the next one has a bend in every column it passes"


def test_families_stay_together_in_their_columns() -> None:
    made = columns([0, 0, 1, 1, 1], [(1, 2), (0, 3), (1, 4)])
    assert made.columns == [[0, 1], [3, 2, 4]]
    assert columns([1, 1, 0, 0], [(3, 0), (2, 1)]).columns == [[2, 3], [1, 0]]


def test_places_of_one_column_keep_their_distance_and_bends_need_none() -> None:
    made = columns([0, 1, 2, 1], [(0, 1), (1, 2), (0, 2), (0, 3)])
    middles = place(made, 40, 10)
    assert min(middles) == 0
    down = sorted((middles[one], one) for one in made.columns[1])
    for (above, one), (below, other) in pairwise(down):
        apart = 10 + (20 if one < 4 else 0) + (20 if other < 4 else 0)
        assert below - above >= apart - 1e-6


def test_parts_are_found_in_the_order_of_their_first_nodes() -> None:
    assert components(6, [(4, 1), (0, 3), (3, 5)]) == [[0, 3, 5], [1, 4], [2]]


@pytest.mark.parametrize(
    ("count", "width", "across"), [(10, 0, 3), (10, 500, 5), (10, 5_000, 10), (1, 0, 1)]
)
def test_a_grid_is_as_wide_as_what_is_above_it_or_well_shaped(
    count: int, width: float, across: int
) -> None:
    assert grid_columns(count, (100, 50), width) == across


def test_boxes_lie_in_rows_with_a_gap() -> None:
    assert shelves([], gap=10) == []
    assert shelves([(100, 50)] * 4, gap=10) == [(0, 0), (110, 0), (0, 60), (110, 60)]


def test_a_chain_is_a_straight_line() -> None:
    made = lay_out(*CHAIN, SIZE)
    assert {y for _, y in made.corners} == {0.0}


def test_many_children_of_one_node_are_folded_into_several_columns() -> None:
    few = lay_out(MOST_IN_A_ROW + 1, [(0, leaf) for leaf in range(1, MOST_IN_A_ROW + 1)], SIZE)
    assert len({x for x, _ in few.corners}) == 2
    for star in ([(0, leaf) for leaf in range(1, 300)], [(root, 299) for root in range(299)]):
        many = lay_out(300, star, SIZE)
        assert 0.8 < many.width / many.height < 3


def test_what_hangs_on_two_nodes_is_not_folded_with_the_rest() -> None:
    shared, other = MOST_IN_A_ROW + 1, MOST_IN_A_ROW + 2
    down = layers(other + 1, [*((0, leaf) for leaf in range(1, shared + 1)), (other, shared)])
    assert set(down[1 : shared + 1]) == {1}
    up = layers(other + 1, [*((root, 0) for root in range(1, shared + 1)), (shared, other)])
    assert set(up[1 : shared + 1]) == {0}


def test_parts_that_are_not_connected_lie_beside_one_another() -> None:
    pairs = [(one, one + 100) for one in range(100)]
    made = lay_out(200, pairs, SIZE)
    assert 0.5 < made.width / made.height < 4


def test_a_node_with_as_many_parents_as_children_stays_behind_its_parents() -> None:
    """No edge becomes shorter by moving it; one with more children than parents moves up."""
    assert layers(5, [(0, 1), (1, 4), (0, 2), (2, 3), (3, 4)]) == [0, 1, 1, 2, 3]
    assert layers(4, [(0, 1), (1, 2), (3, 2)]) == [0, 1, 2, 1]


def test_a_row_is_as_high_as_the_highest_box_of_its_own() -> None:
    boxes = [(100.0, 90.0), (100.0, 20.0), (100.0, 20.0)]
    places = shelves([(300.0, 10.0), *boxes, (300.0, 30.0), *boxes], gap=10)
    heights = [10.0, *(height for _, height in boxes), 30.0, *(height for _, height in boxes)]
    rows = {y: 0.0 for _, y in places}
    for (_, y), height in zip(places, heights, strict=True):
        rows[y] = max(rows[y], height)
    assert len(rows) >= 3
    for (above, height), (below, _) in pairwise(sorted(rows.items())):
        assert below == above + height + 10


def test_what_has_no_edge_is_in_a_grid_below_the_rest() -> None:
    made = lay_out(12, [(0, 1)], SIZE)
    assert min(y for _, y in made.corners[2:]) > max(y for _, y in made.corners[:2])
    assert len({x for x, _ in made.corners[2:]}) > 2


@pytest.mark.parametrize("near", [5, 20, 500])
def test_five_hundred_nodes_take_no_time_to_speak_of(near: int) -> None:
    """Measured: 310,000 to 680,000 calls of functions, which take 20 to 130 ms."""
    calls = 0

    def count(_frame: FrameType, happened: str, _argument: object) -> None:
        nonlocal calls
        calls += happened in ("call", "c_call")

    chance = random.Random(near)
    edges: set[tuple[int, int]] = set()
    while len(edges) < 1_000:
        one, other = chance.randrange(500), chance.randrange(1, near + 1)
        if one + other < 500:
            edges.add((one, one + other))
    sys.setprofile(count)
    made = lay_out(500, list(edges), SIZE)
    sys.setprofile(None)
    assert calls < 1_000_000
    assert len(made.routes) == 1_000
