"""Which task server work goes to, and the same said in shares that a query can ask for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.domain.routing import Routing, Share, merged, workflows_of

WORKFLOWS = ["extract", "load", "train"]
GROUPS = ["daily", "nightly", None]
servers = st.sampled_from(["local", "gpu", "batch"])
routings = st.builds(
    Routing,
    servers,
    st.dictionaries(st.sampled_from(WORKFLOWS), servers),
    st.dictionaries(st.sampled_from(["daily", "nightly"]), servers),
)
known = st.sets(st.sampled_from(WORKFLOWS))


@given(routings, known)
def test_everything_is_in_the_share_of_where_it_goes_and_in_no_other(
    routing: Routing, names: set[str]
) -> None:
    local, elsewhere = routing.local(names), routing.elsewhere(names)
    for workflow in WORKFLOWS:
        for group in GROUPS:
            stays = routing.server_of(workflow, group) == "local"
            found = [
                any(share.holds(workflow, group) for share in shares)
                for shares in (local, elsewhere)
            ]
            is_known = workflow in names
            assert found == [is_known and stays, is_known and not stays]


@given(routings)
def test_what_one_server_writes_another_reads(routing: Routing) -> None:
    assert Routing.from_json(routing.to_json()) == routing


def test_what_is_said_about_nothing_is_one_share_without_groups() -> None:
    assert Routing().local(WORKFLOWS) == (Share(frozenset(WORKFLOWS)),)
    assert Routing().elsewhere(WORKFLOWS) == ()
    assert Routing(by_group={"nightly": "batch"}).elsewhere([]) == ()


def test_equal_conditions_are_merged() -> None:
    groups = frozenset({"nightly"})
    one, two = Share(frozenset({"a"}), groups), Share(frozenset({"b"}), groups)
    assert merged([one, two]) == (Share(frozenset({"a", "b"}), groups),)
    assert merged([one, Share(frozenset({"b"}), groups, only=True)])[0] == one


def test_what_goes_to_some_servers_may_be_left_out() -> None:
    routing = Routing("local", {"extract": "gpu", "load": "batch"}, {"nightly": "gpu"})
    nightly = frozenset({"nightly"})
    own = Share(frozenset({"train"}), nightly, only=True)
    known = sorted(WORKFLOWS)
    assert set(routing.elsewhere(known)) == {Share(frozenset({"extract", "load"})), own}
    assert routing.elsewhere(known, but=["gpu"]) == (Share(frozenset({"load"})),)
    assert routing.elsewhere(known, but=["batch", "gpu"]) == ()
    assert workflows_of(routing.elsewhere(known)) == frozenset(WORKFLOWS)
    assert workflows_of(()) == frozenset()


def test_what_another_server_leaves_out_goes_to_its_own_workers() -> None:
    assert Routing.from_json('{"groups": {"nightly": "gpu"}}') == Routing(
        "local", {}, {"nightly": "gpu"}
    )
    assert Routing.from_json('{"default": "gpu", "workflows": {"load": "local"}}') == Routing(
        "gpu", {"load": "local"}, {}
    )
    assert Routing("gpu", {"load": "a"}, {"nightly": "b"}).to_json() == (
        '{"default": "gpu", "groups": {"nightly": "b"}, "workflows": {"load": "a"}}'
    )
