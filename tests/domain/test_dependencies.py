from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.dependencies import (
    DependsOn,
    EdgeState,
    Join,
    Pointers,
    due_by_edges,
    initial_consumed_seq,
    parents_of,
)
from headway.domain.graph import Edge, check_acyclic, on_cycles
from headway.errors import CircularDependencyError, DefinitionError

JOINS: tuple[Join, ...] = ("all", "any")

# --- cycles


def refusal(groups: Mapping[str, str], edges: Iterable[Edge]) -> CircularDependencyError:
    with pytest.raises(CircularDependencyError) as caught:
        check_acyclic(groups, edges)
    return caught.value


def own_groups(*external_ids: str) -> dict[str, str]:
    return {one: f"group-{one}" for one in external_ids}


def test_the_message_names_the_groups_on_the_cycle_sorted() -> None:
    edges = [Edge("c", "a"), Edge("a", "b"), Edge("b", "c"), Edge("root", "a"), Edge("c", "leaf")]
    error = refusal(own_groups("a", "b", "c", "root", "leaf"), edges)
    assert str(error) == (
        "Circular dependency detected among manifest groups: [group-a, group-b, group-c]. "
        "Manifest groups must form a directed acyclic graph (DAG)."
    )
    assert isinstance(error, DefinitionError)


def test_groups_may_be_cyclic_where_manifests_are_not() -> None:
    groups = {"a1": "a", "b1": "b", "a2": "a"}
    assert on_cycles([("a1", "b1"), ("b1", "a2")]) == set()
    assert refusal(groups, [Edge("a1", "b1"), Edge("b1", "a2")]).members == ("a", "b")


@pytest.mark.parametrize("groups", [{"a": "etl", "b": "etl", "c": "etl"}, {"a": "etl"}, {}])
def test_manifests_in_a_circle_are_found_inside_one_group_and_with_unknown_ends(
    groups: dict[str, str],
) -> None:
    error = refusal(groups, [Edge("b", "a"), Edge("a", "b"), Edge("b", "c")])
    assert str(error) == (
        "Circular dependency detected among manifests: [a, b]. "
        "Manifests must form a directed acyclic graph (DAG)."
    )


def test_a_manifest_that_depends_on_itself_is_refused() -> None:
    assert refusal({"a": "etl"}, [Edge("a", "a")]).members == ("a",)


@pytest.mark.parametrize(
    ("groups", "edges"),
    [
        ({}, []),
        ({"a": "etl", "b": "etl"}, [Edge("a", "b")]),
        ({"a": "x", "b": "y"}, [Edge("a", "b"), Edge("a", "b")]),
        # A diamond, and a parent nobody declared.
        (own_groups("a", "b", "c", "d"), [Edge(*pair) for pair in ("ab", "ac", "bd", "cd")]),
        ({"a": "x"}, [Edge("gone", "a"), Edge("a", "later")]),
    ],
)
def test_what_is_no_cycle_passes(groups: dict[str, str], edges: list[Edge]) -> None:
    check_acyclic(groups, iter(edges))


def test_what_lies_between_two_cycles_is_not_named() -> None:
    edges = [("a", "b"), ("b", "a"), ("b", "between"), ("between", "c"), ("c", "d"), ("d", "c")]
    assert on_cycles(edges) == {"a", "b", "c", "d"}


def test_long_lists_are_cut_and_the_rest_is_counted() -> None:
    ring = [f"{number:02}" for number in range(25)]
    error = refusal({}, [Edge(*pair) for pair in pairwise([*ring, ring[0]])])
    assert f"[{', '.join(ring[:20])}, … and 5 more]" in str(error)
    assert error.members == tuple(ring)


@pytest.mark.full
def test_a_chain_of_100_000_manifests_is_no_trouble_nor_is_a_ring() -> None:
    ids = [f"extract-{number}" for number in range(100_000)]
    chain = [Edge(parent, child) for parent, child in pairwise(ids)]
    check_acyclic({one: one for one in ids}, chain)
    error = refusal(dict.fromkeys(ids, "etl"), [*chain, Edge(ids[-1], ids[0])])
    assert len(error.members) == 100_000
    assert len(str(error)) < 500


def by_brute_force(arrows: Iterable[tuple[str, str]]) -> set[str]:
    reach = set(arrows)
    while longer := {(a, d) for a, b in reach for c, d in reach if b == c} - reach:
        reach |= longer
    return {tail for tail, head in reach if tail == head}


NODES = st.sampled_from("abcdefgh")
GRAPHS = st.lists(st.builds(Edge, NODES, NODES), max_size=14)


@given(GRAPHS, st.dictionaries(NODES, st.sampled_from(["x", "y", "z"])))
def test_refused_are_exactly_the_graphs_with_a_cycle_and_named_exactly_those_on_one(
    edges: list[Edge], groups: dict[str, str]
) -> None:
    known = [edge for edge in edges if edge.parent in groups and edge.child in groups]
    between = {(groups[parent], groups[child]) for parent, child in known}
    cyclic_groups = by_brute_force((a, b) for a, b in between if a != b)
    expected = cyclic_groups or by_brute_force(edges)
    if not expected:
        return check_acyclic(groups, edges)
    error = refusal(groups, edges)
    assert error.kind == ("manifest groups" if cyclic_groups else "manifests")
    assert error.members == tuple(sorted(expected))
    return None


# --- when a child is due


@pytest.mark.parametrize(
    ("edge", "due", "reason"),
    [
        (EdgeState("extract", 1, 0), True, "new success of 'extract'"),
        (EdgeState("extract", 7, 2), True, "new success of 'extract'"),
        (EdgeState("extract", 2, 2), False, "waits for the next success of 'extract'"),
        (EdgeState("extract"), False, "waits for the first success of 'extract'"),
        (EdgeState("extract", 1, 0, parent_enabled=False), False, "parent disabled: 'extract'"),
        (EdgeState(None, 0, 4), False, "a parent was removed"),
    ],
)
@pytest.mark.parametrize("join", JOINS)
def test_one_parent(edge: EdgeState, due: bool, reason: str, join: Join) -> None:
    decision = due_by_edges([edge], join)
    assert (decision.due, decision.reason) == (due, reason)


NEW, OLD, FIRST = EdgeState("new", 3, 2), EdgeState("old", 5, 5), EdgeState("first")
OFF, GONE = EdgeState("off", 2, 0, parent_enabled=False), EdgeState(None, 0, 4)


@pytest.mark.parametrize(
    ("join", "edges", "due", "reason"),
    [
        ("all", [NEW, NEW], True, "new success of 'new', 'new'"),
        ("all", [NEW, OLD], False, "waits for the next success of 'old'"),
        ("all", [NEW, OFF], False, "parent disabled: 'off'"),
        ("all", [NEW, GONE], False, "a parent was removed"),
        (
            "all",
            [FIRST, NEW, OLD, FIRST],
            False,
            "waits for the first success of 'first', 'first'; waits for the next success of 'old'",
        ),
        ("any", [OLD, NEW], True, "new success of 'new'"),
        ("any", [GONE, OFF, NEW], True, "new success of 'new'"),
        ("any", [OFF, OFF], False, "parent disabled: 'off', 'off' (one is enough)"),
        (
            "any",
            [GONE, FIRST],
            False,
            "a parent was removed; waits for the first success of 'first' (one is enough)",
        ),
        ("all", [], False, "has no parent"),
        ("any", [], False, "has no parent"),
    ],
)
def test_several_parents(join: Join, edges: list[EdgeState], due: bool, reason: str) -> None:
    decision = due_by_edges(edges, join)
    assert (decision.due, decision.reason) == (due, reason)


@pytest.mark.parametrize("join", JOINS)
def test_an_entry_has_seen_the_newest_success_of_every_parent_it_still_has(join: Join) -> None:
    assert due_by_edges([NEW, OLD, FIRST, OFF, GONE], join).seen == (3, 5, 0, 2, 4)


def test_many_parents_are_named_in_part() -> None:
    reason = due_by_edges([EdgeState(f"p{number}") for number in range(100)]).reason
    assert reason == "waits for the first success of 'p0', 'p1', 'p2', 'p3', 'p4' and 95 more"


# --- the edge rule beside the comparison of two times

Ending = Literal["success", "failure", "cancel"]
START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass
class History:
    """Parents and a child in time; each thing that happens takes a second of its own."""

    parents: int
    now: datetime = START
    child_success: datetime | None = None
    consumed_until: datetime | None = None
    parent_successes: list[list[datetime]] = field(default_factory=list)
    edges: list[EdgeState] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parent_successes = [[] for _ in range(self.parents)]

    def declare_edges(self) -> None:
        for number, successes in enumerate(self.parent_successes):
            consumed = initial_consumed_seq(
                len(successes), max(successes, default=None), self.child_success
            )
            self.edges.append(EdgeState(f"parent-{number}", len(successes), consumed))

    def succeed(self, number: int) -> None:
        self.parent_successes[number].append(self.tick())
        if self.edges:
            seq = len(self.parent_successes[number])
            self.edges[number] = replace(self.edges[number], parent_success_seq=seq)

    def run_child(self, ending: Ending, meanwhile: Iterable[int] = ()) -> None:
        dispatched_at, seen = self.tick(), due_by_edges(self.edges).seen
        for number in meanwhile:
            self.succeed(number)
        finished_at = self.tick()
        if ending == "failure":
            return
        self.consumed_until = dispatched_at
        self.edges = [
            replace(edge, consumed_seq=seq) for edge, seq in zip(self.edges, seen, strict=True)
        ]
        if ending == "success":
            self.child_success = finished_at

    def tick(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def newer_than(self, moment: datetime | None) -> list[bool]:
        """Per parent: is its last success later than *moment*?"""
        return [
            bool(successes) and (moment is None or successes[-1] > moment)
            for successes in self.parent_successes
        ]

    def due(self, join: Join) -> bool:
        return due_by_edges(self.edges, join).due

    def due_by_times(self, join: Join) -> bool:
        newer = self.newer_than(self.child_success)
        return all(newer) if join == "all" else any(newer)


PARENT = st.integers(0, 2)
ENDINGS: tuple[Ending, ...] = ("success", "failure")


@given(
    before=st.lists(PARENT | st.sampled_from(ENDINGS), max_size=6),
    after=st.lists(PARENT | st.sampled_from(ENDINGS), max_size=20),
)
def test_without_overlap_the_edge_rule_equals_comparing_last_successes(
    before: list[int | Ending], after: list[int | Ending]
) -> None:
    history = History(parents=3)

    def happen(event: int | Ending) -> None:
        history.succeed(event) if isinstance(event, int) else history.run_child(event)

    for event in before:
        happen(event)
    history.declare_edges()
    for join in JOINS:
        assert history.due(join) == history.due_by_times(join)
    for event in after:
        happen(event)
        for join in JOINS:
            assert history.due(join) == history.due_by_times(join)


RUN = st.tuples(st.sampled_from(["success", "failure", "cancel"]), st.lists(PARENT, max_size=3))


@given(st.lists(PARENT | RUN, max_size=20))
def test_with_overlap_a_parent_success_after_the_dispatch_is_never_lost(
    events: list[int | tuple[Ending, list[int]]],
) -> None:
    history = History(parents=3)
    history.declare_edges()
    for event in events:
        if isinstance(event, int):
            history.succeed(event)
        else:
            ending, meanwhile = event
            history.run_child(ending, meanwhile)
            if ending == "success":
                # Its finish hides every parent success from a comparison of times ...
                assert not history.due_by_times("any")
                # ... and from the edges only those it had seen.
                assert history.due("any") == bool(meanwhile)
                assert history.due("all") == (set(meanwhile) == {0, 1, 2})
        unconsumed = [due_by_edges([edge]).due for edge in history.edges]
        assert unconsumed == history.newer_than(history.consumed_until)


@given(st.lists(st.integers(0, 20), max_size=8, unique=True), st.none() | st.integers(0, 20))
def test_what_a_new_edge_has_consumed_makes_the_same_due_as_counting_the_whole_history(
    hours: list[int], child: int | None
) -> None:
    successes = sorted(START + timedelta(hours=hour) for hour in hours)
    child_success = None if child is None else START + timedelta(hours=child)
    last = successes[-1] if successes else None
    consumed = initial_consumed_seq(len(successes), last, child_success)
    counted = sum(1 for one in successes if child_success is not None and one <= child_success)
    assert counted <= consumed <= len(successes)
    assert (consumed == len(successes)) == (counted == len(successes))


# --- where the builder stands

EMPTY = Pointers()
AT_A, AT_B = Pointers("A", "A"), Pointers("A", "B")


@pytest.mark.parametrize("pointers", [EMPTY, AT_B, Pointers("A", None)])
def test_starting_anew_forgets_what_was_before(pointers: Pointers) -> None:
    assert pointers.schedule("X") == (None, Pointers("X", "X"))
    assert pointers.schedule_once() == (None, EMPTY)
    assert pointers.schedule_many() == (None, EMPTY)


@pytest.mark.parametrize(
    ("pointers", "call", "parent", "after"),
    [
        (AT_A, "include", "A", Pointers("A", "X")),
        (AT_B, "include", "A", Pointers("A", "X")),
        (Pointers("A", None), "include", "A", Pointers("A", "X")),
        (AT_A, "then_include", "A", Pointers("A", "X")),
        (AT_B, "then_include", "B", Pointers("A", "X")),
    ],
)
def test_include_branches_from_the_root_and_then_include_goes_on_from_the_cursor(
    pointers: Pointers, call: str, parent: str, after: Pointers
) -> None:
    assert getattr(pointers, call)("X") == (parent, after)


@pytest.mark.parametrize(
    ("pointers", "call", "depends_on", "parents"),
    [
        (AT_B, "include_many", [None, None], [("A",), ("A",)]),
        (AT_B, "include_many", [None, "P"], [("A",), ("P",)]),
        (AT_B, "include_many", [["Q", "P"], []], [("P", "Q"), ("A",)]),
        (EMPTY, "include_many", ["P", "Q"], [("P",), ("Q",)]),
        (EMPTY, "include_many", [], []),
        (AT_B, "then_include_many", ["P", "B"], [("P",), ("B",)]),
        (EMPTY, "then_include_many", ["P", ["P", "Q"]], [("P",), ("P", "Q")]),
        (EMPTY, "then_include_many", [], []),
    ],
)
def test_batches_keep_the_root_and_leave_no_cursor(
    pointers: Pointers, call: str, depends_on: list[DependsOn], parents: list[tuple[str, ...]]
) -> None:
    items = ((f"X-{number}", one) for number, one in enumerate(depends_on))
    assert getattr(pointers, call)(items) == (parents, Pointers(pointers.root, None))


def test_the_example_of_the_rules() -> None:
    pointers = EMPTY.schedule("A")[1]
    to_b, pointers = pointers.include("B")
    to_c, pointers = pointers.then_include("C")
    to_d, pointers = pointers.include("D")
    assert (to_b, to_c, to_d) == ("A", "B", "A")
    assert pointers == Pointers("A", "D")


@pytest.mark.parametrize(
    ("pointers", "call", "argument", "message"),
    [
        (
            EMPTY,
            "include",
            "X",
            "X: include(...) has no schedule(...) before it to depend on; write "
            "schedule(...).include(...), or include_many(...) with "
            "Item(..., depends_on='extract-1') to name its parent",
        ),
        (
            EMPTY,
            "then_include",
            "X",
            "X: then_include(...) has no single manifest before it to depend on; write "
            "schedule(...) before it, or then_include_many(...) with "
            "Item(..., depends_on='extract-1') to name its parent",
        ),
        (
            Pointers("A", None),
            "then_include",
            "X",
            "X: then_include(...) has no single manifest before it to depend on; write "
            "include(...) to come after 'A', or then_include_many(...) with "
            "Item(..., depends_on='extract-1') to name its parent",
        ),
        (
            EMPTY,
            "include_many",
            [("X-0", "P"), ("X-1", None)],
            "X-1: has no parent; write Item(..., depends_on='extract-1') to name one, "
            "or write schedule(...), not a batch, before include_many(...)",
        ),
        (
            EMPTY,
            "then_include_many",
            [("X-0", "P"), ("X-1", [])],
            "X-1: has no parent; write Item(..., depends_on='extract-1') to name one, "
            "or write include_many(...), which puts it after a schedule(...) before it",
        ),
        (
            AT_B,
            "then_include_many",
            [("X-0", None)],
            "X-0: has no parent; write Item(..., depends_on='extract-1') to name one, "
            "or write include_many(...), which puts it after 'A'",
        ),
    ],
)
def test_misuse_says_what_to_write_instead(
    pointers: Pointers, call: str, argument: object, message: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        getattr(pointers, call)(argument)
    assert str(caught.value) == message


@pytest.mark.parametrize("depends_on", ["", 5, ["a", 5], b"extract", ["a", " b"]])
def test_what_depends_on_may_not_be_names_the_item(depends_on: object) -> None:
    with pytest.raises(DefinitionError, match=r"^load-7: depends_on = "):
        parents_of("load-7", depends_on)  # type: ignore[arg-type]


def test_parents_are_spelled_like_the_external_ids_they_name() -> None:
    assert parents_of("load", "cafe\u0301") == ("caf\u00e9",)


CALLS = st.sampled_from(["schedule", "include", "then_include", "include_many"])


@given(st.lists(st.tuples(CALLS, st.none() | st.integers(0, 9)), max_size=10))
def test_no_chain_of_calls_yields_a_cycle_that_is_not_reported(
    calls: list[tuple[str, int | None]],
) -> None:
    pointers, edges = EMPTY, []
    for number, (call, named) in enumerate(calls):
        child, depends_on = f"m{number}", None if named is None else f"m{named}"
        try:
            if call == "include_many":
                (parents,), pointers = pointers.include_many([(child, depends_on)])
                edges += [Edge(parent, child) for parent in parents]
            else:
                parent, pointers = getattr(pointers, call)(child)
                edges += [Edge(parent, child)] if parent else []
        except DefinitionError:
            continue
    members = by_brute_force(edges)
    if members:
        assert refusal({}, edges).members == tuple(sorted(members))
    else:
        check_acyclic({}, edges)
