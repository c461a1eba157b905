"""Circles of manifests or of their groups are refused at the call that would close them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Headway, Item, every
from headway.definition.builder import Chain
from headway.errors import CircularDependencyError, HeadwayError

HOURLY = every(hours=1)


def application() -> Headway:
    hw = Headway("warehouse")
    hw.workflow("work")(lambda: None)
    return hw


@pytest.fixture
def hw() -> Headway:
    return application()


def after(hw: Headway, name: str, *parents: str, group: str | None = None) -> Chain:
    """A manifest called ``name-0`` after these parents, declared or not."""
    chain = hw.schedule_many("work", name, [], HOURLY)
    chosen = {} if group is None else {"group": group}
    return chain.include_many("work", name, [Item(0, depends_on=parents, **chosen)])


def refusal(hw: Headway, name: str, *parents: str, group: str | None = None) -> str:
    """What declaring this says; nothing is declared."""
    before = hw.declaration()
    with pytest.raises(CircularDependencyError) as refused:
        after(hw, name, *parents, group=group)
    assert hw.declaration() == before
    return str(refused.value)


def test_the_message_is_the_seeds_and_names_the_groups_on_the_circle_sorted(hw: Headway) -> None:
    after(hw, "one", "three-0", group="group-b")
    after(hw, "two", "one-0", group="group-a")
    after(hw, "behind", "two-0", group="group-z")
    assert refusal(hw, "three", "two-0", group="group-c") == (
        "Circular dependency detected among manifest groups: [group-a, group-b, group-c]. "
        "Manifest groups must form a directed acyclic graph (DAG)."
    )


def test_groups_may_go_in_a_circle_although_manifests_do_not(hw: Headway) -> None:
    hw.schedule("work", "a1", None, HOURLY, group="a").then_include("work", "b1", group="b")
    chain = hw.schedule("work", "b2", None, HOURLY, group="b")
    before = hw.declaration()
    with pytest.raises(CircularDependencyError, match=r"manifest groups: \[a, b\]\."):
        chain.then_include("work", "a2", group="a")
    assert hw.declaration() == before


def test_manifests_go_in_a_circle_inside_one_group(hw: Headway) -> None:
    after(hw, "a", "b-0", group="etl")
    assert refusal(hw, "b", "a-0", group="etl") == (
        "Circular dependency detected among manifests: [a-0, b-0]. "
        "Manifests must form a directed acyclic graph (DAG)."
    )


def test_a_circle_inside_one_batch_is_found(hw: Headway) -> None:
    batch = [Item("a", depends_on="x-b"), Item("b", depends_on="x-c"), Item("c", depends_on="x-a")]
    chain = hw.schedule_many("work", "y", [], HOURLY)
    with pytest.raises(CircularDependencyError, match=r"manifests: \[x-a, x-b, x-c\]"):
        chain.then_include_many("work", "x", batch)
    assert hw.declaration().manifests == ()


def test_dependencies_inside_one_group_are_fine(hw: Headway) -> None:
    hw.schedule("work", "a", None, HOURLY, group="etl").then_include("work", "b", group="etl")
    assert len(hw.declaration().manifests) == 2


def test_a_parent_may_be_declared_after_its_child(hw: Headway) -> None:
    after(hw, "load", "extract")
    hw.schedule("work", "extract", None, HOURLY)
    parents = {one.external_id: one.parents for one in hw.declaration().manifests}
    assert parents == {"load-0": ("extract",), "extract": ()}


def test_a_parent_declared_later_in_a_group_closes_a_circle_of_groups(hw: Headway) -> None:
    after(hw, "load", "extract", group="loads")
    hw.schedule("work", "report", None, HOURLY, group="loads")
    hw.schedule("work", "mail", None, HOURLY, group="mails")
    with pytest.raises(CircularDependencyError, match=r"\[extracts, loads\]"):
        chain = hw.schedule_many("work", "none", [], HOURLY)
        chain.include_many("work", "e", [Item(0, depends_on="report")], group="extracts")
        hw.schedule("work", "extract", None, HOURLY, group="extracts")


NAMES = st.sampled_from([f"m{number}-0" for number in range(5)])
CALLS = st.lists(
    st.tuples(
        st.sampled_from([f"m{number}" for number in range(5)]),
        st.lists(NAMES, min_size=1, max_size=2),
        st.sampled_from(["g0", "g1", "g2", None]),
    ),
    max_size=8,
)


def reaches(edges: set[tuple[str, str]]) -> bool:
    """Whether some node leads back to itself; by brute force, unlike the code under test."""
    closed = set(edges)
    while True:
        further = {(a, d) for a, b in closed for c, d in closed if b == c} | closed
        if further == closed:
            return any(above == below for above, below in closed)
        closed = further


@given(CALLS)
def test_what_was_taken_never_goes_in_a_circle_and_what_was_refused_would(
    calls: list[tuple[str, list[str], str | None]],
) -> None:
    hw = application()
    for name, parents, group in calls:
        circular = False
        try:
            after(hw, name, *parents, group=group)
        except CircularDependencyError:
            circular = True
        except HeadwayError:
            continue  # an id declared before, or a manifest after itself
        made = {one.external_id: one for one in hw.declaration().manifests}
        groups = {key: one.group.name for key, one in made.items()}
        edges = {(parent, key) for key, one in made.items() for parent in one.parents}
        if circular:
            groups[f"{name}-0"] = group or name
            edges |= {(parent, f"{name}-0") for parent in parents}
        ends = {(groups.get(above), groups.get(below)) for above, below in edges}
        between = {(a, b) for a, b in ends if a is not None and b is not None and a != b}
        assert circular == (reaches(edges) or reaches(between))
