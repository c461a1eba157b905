"""The fluent builder: behaviour.md 9.5 (pointers) and 9.6 (errors), through the public API."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from headway import Headway, Item, cron, every, once
from headway.definition.builder import Chain
from headway.domain.schedule import Never
from headway.errors import DefinitionError, HeadwayError

HOURLY = every(hours=1)
NEW_YEAR = once(datetime(2030, 1, 1, tzinfo=UTC))

Extend = Callable[[Headway, Chain], Chain]


class Table(BaseModel):
    name: str


@pytest.fixture
def hw() -> Headway:
    hw = Headway("warehouse")
    hw.workflow("work")(lambda: None)
    register(hw)
    return hw


def register(hw: Headway) -> None:
    """A workflow that takes a table."""

    @hw.workflow
    def load(table: Table) -> None: ...


def parents(hw: Headway) -> dict[str, tuple[str, ...]]:
    return {one.external_id: one.parents for one in hw.declaration().manifests}


def root(hw: Headway) -> Chain:
    return hw.schedule("work", "root", None, HOURLY)


def cursor(hw: Headway) -> Chain:
    return root(hw).include("work", "cursor", None)


def nothing(hw: Headway) -> Chain:
    return hw.schedule_many("work", "batch", [], HOURLY)


def items(*named: str | None) -> list[Item]:
    return [Item(number, depends_on=parent) for number, parent in enumerate(named)]


# Pointers (9.5): what each call hangs on, and where the chain stands after it.

POINTERS: dict[str, tuple[Extend, dict[str, tuple[str, ...]], str | None, str | None]] = {
    "schedule": (
        lambda hw, chain: chain.schedule("work", "self", None, HOURLY),
        {"self": ()},
        "self",
        "self",
    ),
    "schedule_once": (
        lambda hw, chain: chain.schedule_once("work", "self", None, NEW_YEAR),
        {"self": ()},
        None,
        None,
    ),
    "schedule_many": (
        lambda hw, chain: chain.schedule_many("work", "b", items(None), HOURLY),
        {"b-0": ()},
        None,
        None,
    ),
    "include": (
        lambda hw, chain: chain.include("work", "self", None),
        {"self": ("root",)},
        "root",
        "self",
    ),
    "then_include": (
        lambda hw, chain: chain.then_include("work", "self", None),
        {"self": ("cursor",)},
        "root",
        "self",
    ),
    "include_many": (
        lambda hw, chain: chain.include_many("work", "b", items(None, "cursor")),
        {"b-0": ("root",), "b-1": ("cursor",)},
        "root",
        None,
    ),
    "then_include_many": (
        lambda hw, chain: chain.then_include_many("work", "b", items("root", "cursor")),
        {"b-0": ("root",), "b-1": ("cursor",)},
        "root",
        None,
    ),
}


@pytest.mark.parametrize("call", POINTERS)
def test_each_call_has_its_parent_and_moves_the_pointers(hw: Headway, call: str) -> None:
    extend, declared, root_after, cursor_after = POINTERS[call]
    chain = extend(hw, cursor(hw))
    assert parents(hw) == {"root": (), "cursor": ("root",)} | declared
    assert (chain.root, chain.cursor) == (root_after, cursor_after)


def test_include_branches_from_the_root_and_then_include_goes_on_from_the_cursor(
    hw: Headway,
) -> None:
    (
        hw.schedule("work", "A", None, HOURLY)
        .include("work", "B", None)
        .then_include("work", "C", None)
        .include("work", "D", None)
    )
    assert parents(hw) == {"A": (), "B": ("A",), "C": ("B",), "D": ("A",)}


def test_a_chain_held_on_to_branches_where_it_stood(hw: Headway) -> None:
    chain = root(hw)
    chain.then_include("work", "left", None)
    chain.then_include("work", "right", None)
    assert parents(hw) == {"root": (), "left": ("root",), "right": ("root",)}


def test_a_batch_that_names_every_parent_needs_no_root(hw: Headway) -> None:
    chain = hw.schedule_many("work", "extract", [Item(n) for n in range(3)], HOURLY)
    chain.include_many("work", "load", [Item(n, depends_on=f"extract-{n}") for n in range(3)])
    assert parents(hw)["load-2"] == ("extract-2",)


def test_several_parents_are_named_as_a_list(hw: Headway) -> None:
    cursor(hw).then_include_many("work", "b", [Item("x", depends_on=["root", "cursor", "root"])])
    assert parents(hw)["b-x"] == ("cursor", "root")


def test_names_that_only_look_different_are_one_parent(hw: Headway) -> None:
    chain = root(hw).include("work", "cafe\u0301", None).then_include("work", "after", None)
    chain.then_include_many("work", "b", items("cafe\u0301"))
    assert parents(hw)["after"] == parents(hw)["b-0"] == ("caf\u00e9",)


# Errors (9.6): at the call, with what to write instead, and nothing declared.

MISUSES: dict[str, tuple[Callable[[Headway], Chain], Extend, list[str]]] = {
    "include without root": (
        nothing,
        lambda hw, chain: chain.include("work", "self", None),
        ["self: include(...) has no schedule(...) before it", "schedule(...).include(...)"],
    ),
    "then_include without cursor": (
        nothing,
        lambda hw, chain: chain.then_include("work", "self", None),
        ["self: then_include(...) has no single manifest before it", "write schedule(...)"],
    ),
    "then_include after a batch of the root": (
        lambda hw: root(hw).include_many("work", "load", items(None)),
        lambda hw, chain: chain.then_include("work", "self", None),
        ["self: then_include(...)", "include(...) to come after 'root'", "then_include_many(...)"],
    ),
    "include_many, one item without a parent and no root": (
        nothing,
        lambda hw, chain: chain.include_many("work", "b", items("batch-0", None)),
        ["b-1: has no parent", "depends_on=", "schedule(...), not a batch"],
    ),
    "then_include_many item without a parent": (
        cursor,
        lambda hw, chain: chain.then_include_many("work", "b", items("root", None)),
        ["b-1: has no parent", "depends_on=", "include_many(...), which puts it after 'root'"],
    ),
    "schedule_many item with a parent": (
        nothing,
        lambda hw, chain: chain.schedule_many("work", "b", items(None, "root"), HOURLY),
        ["b-1: depends_on = 'root'", "include_many(...)"],
    ),
    "input of another type": (
        root,
        lambda hw, chain: chain.include("load", "self", 7),
        ["self", "Table", "7"],
    ),
    "input of another type in a batch": (
        root,
        lambda hw, chain: chain.include_many("load", "b", [Item("x", Table(name="a")), Item("y")]),
        ["b-y", "Table", "None"],
    ),
    "an unregistered workflow": (
        root,
        lambda hw, chain: chain.include("nowhere", "self", None),
        ["'nowhere' is not registered here"],
    ),
    "something that is no item": (
        root,
        lambda hw, chain: chain.include_many("work", "b", ["users"]),  # type: ignore[list-item]
        ["b: 'users' is not an Item", "Item('users', input)"],
    ),
    "a batch without a name": (
        root,
        lambda hw, chain: chain.include_many("work", "", items(None)),
        ["batch name"],
    ),
    "a parent that is no name": (
        root,
        lambda hw, chain: chain.then_include_many("work", "b", [Item("x", depends_on=[7])]),  # type: ignore[list-item]
        ["b-x: depends_on", "7"],
    ),
    "a manifest after itself": (
        root,
        lambda hw, chain: chain.include_many("work", "b", items("b-0")),
        ["b-0: depends on itself"],
    ),
    "a chain after itself": (
        root,
        lambda hw, chain: chain.include("work", "root", None),
        ["root: depends on itself"],
    ),
    "an id declared before": (
        cursor,
        lambda hw, chain: chain.include("work", "cursor", None),
        ["external_id = 'cursor': is already declared"],
    ),
    "an id twice in one batch": (
        root,
        lambda hw, chain: chain.include_many("work", "b", [Item("x"), Item("y"), Item("x")]),
        ["external_id = 'b-x': is already declared"],
    ),
    "an interval instead of once(...)": (
        nothing,
        lambda hw, chain: chain.schedule_once("work", "self", None, HOURLY),  # type: ignore[arg-type]
        ["self: ", "every 1 hour", "once("],
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_misuse_is_refused_at_the_call_and_declares_nothing(hw: Headway, misuse: str) -> None:
    start, extend, told = MISUSES[misuse]
    chain = start(hw)
    before = hw.declaration()
    with pytest.raises(HeadwayError) as refused:
        extend(hw, chain)
    message = str(refused.value)
    assert all(part in message for part in told), message
    assert "\n" not in message and len(message) < 400
    assert hw.declaration() == before


@pytest.mark.parametrize("call", ["schedule_many", "include_many", "then_include_many"])
def test_an_error_at_item_57_of_100_declares_none_of_them(hw: Headway, call: str) -> None:
    chain = root(hw)
    before = hw.declaration()

    def hundred() -> Iterator[Item]:
        for number in range(100):
            wrong: dict[str, Any] = {"priority": 99} if number == 57 else {}
            parent = None if call == "schedule_many" else "root"
            yield Item(number, depends_on=parent, **wrong)

    arguments = ("work", "load", hundred()) + ((HOURLY,) if call == "schedule_many" else ())
    with pytest.raises(DefinitionError, match="load-57: priority = 99"):
        getattr(chain, call)(*arguments)
    assert hw.declaration() == before


@pytest.mark.parametrize("schedule", [HOURLY, NEW_YEAR, cron("0 6 * * *"), Never()])
def test_a_schedule_in_the_place_of_an_input_is_the_schedule(hw: Headway, schedule: Any) -> None:
    hw.schedule("work", "self", schedule)
    [made] = hw.declaration().manifests
    assert (made.schedule, made.input) == (schedule, "null")


def test_an_input_may_be_left_out_where_the_workflow_takes_none(hw: Headway) -> None:
    hw.schedule("work", "a").include("work", "b").then_include("work", "c")
    assert parents(hw) == {"a": (), "b": ("a",), "c": ("b",)}
