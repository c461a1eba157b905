"""Workflows by name: what may be registered, how it is found, and that nothing is imported."""

import sys
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from headway import Headway
from headway.definition.registry import Registry
from headway.domain.isolation import asked_for
from headway.errors import DefinitionError, UnknownWorkflow
from headway.workflow import Workflow


class Run:
    """Stands for the context of a run."""


class Table(BaseModel):
    name: str


class Row(TypedDict):
    name: str


@dataclass
class Bucket:
    number: int


class Opaque:
    """A class pydantic knows nothing about."""


def extract(table: Table) -> None: ...
def transform(bucket: Bucket, run: Run) -> None: ...
async def load(row: Row) -> None: ...
def report(run: Run) -> None: ...
def count(numbers: list[int]) -> int: ...  # type: ignore[empty-body]
def find_changes(table: Table) -> list[int]: ...  # type: ignore[empty-body]
def bare(table): ...  # type: ignore[no-untyped-def]
def anything(value: Any) -> None: ...
def any_object(value: object) -> None: ...
def opaque(value: Opaque) -> None: ...
def unfinished(value: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "type_name"),
    [
        (extract, "Table"),
        (transform, "Bucket"),
        (load, "Row"),
        (report, "None"),
        (count, "list[int]"),
    ],
)
def test_a_function_is_found_by_its_name_and_by_itself(function: Any, type_name: str) -> None:
    registry = Registry()
    registered = registry.register(None, (function,), Run)
    assert registered.name == function.__name__
    assert registered.input_type.name == type_name
    assert registry.find(function.__name__) is registered
    assert registry.find(function) is registered
    assert registry.find(registered.workflow) is registered


def test_a_chain_is_found_by_its_name_and_takes_what_its_first_step_takes() -> None:
    registry = Registry()
    delta = registry.register("delta-import", (find_changes, count), Run)
    assert registry.find("delta-import") is delta
    assert delta.input_type.name == "Table"
    with pytest.raises(UnknownWorkflow):
        registry.find(find_changes)


def test_names_are_sorted_and_a_lone_function_needs_no_tuple() -> None:
    registry = Registry()
    assert registry.names() == ()
    registry.register(None, report, Run)
    registry.register(None, (extract,), Run)
    assert registry.names() == ("extract", "report")


def test_each_workflow_is_listed_with_the_step_it_starts_with() -> None:
    registry = Registry()
    assert registry.first_steps() == {}
    registry.register("delta-import", (find_changes, count), Run)
    registry.register(None, (extract,), Run)
    assert registry.first_steps() == {"delta-import": "find_changes", "extract": "extract"}


def test_what_is_offered_is_registered_when_it_is_first_asked_for() -> None:
    for reference in ("own.report", report):
        registry = Registry()
        registry.offer("own.report", report, Run)
        assert registry.names() == ()
        found = registry.find(reference)
        assert found.name == "own.report"
        assert registry.find("own.report") is registry.find(report) is found
        assert (registry.names(), registry.first_steps()) == (
            ("own.report",),
            {"own.report": "report"},
        )


def test_an_isolated_workflow_is_isolated_alike_everywhere() -> None:
    hw = Headway()
    hw.workflow("load", isolated=True, max_memory="2GB")(extract)
    hw.workflow("load", isolated=True, max_memory="2GB")(extract)
    chain = hw.workflow("chain", steps=(find_changes, count), isolated=True, max_memory="1GB")
    isolated = {name: hw.registry.find(name).isolation for name in hw.registry.names()}
    assert isolated == {"load": asked_for(True, "2GB"), "chain": asked_for(True, "1GB")}
    assert isolated["load"] != isolated["chain"]
    others: list[dict[str, Any]] = [{}, {"isolated": True}, {"isolated": True, "max_memory": "1GB"}]
    for wishes in others:
        with pytest.raises(DefinitionError, match="already registered with another isolated="):
            hw.workflow("load", **wishes)(extract)
    assert hw.registry.find(chain).name == "chain"


def test_a_step_made_inside_a_function_cannot_be_isolated() -> None:
    def inside(table: Table) -> None: ...

    hw = Headway()
    with pytest.raises(DefinitionError) as refused:
        hw.workflow("load", isolated=True)(inside)
    assert str(refused.value) == (
        "workflow 'load': isolated = True: step 'inside' is defined inside a function, where its "
        "process cannot import it from; define it with def at the top of a module"
    )
    assert hw.registry.names() == ()


def test_registering_the_same_again_changes_nothing() -> None:
    registry = Registry()
    first = registry.register(None, (extract,), Run)
    assert registry.register("extract", (extract,), Run) is first
    assert registry.find(extract) is first


def test_other_code_under_a_taken_name_is_refused_naming_both() -> None:
    registry = Registry()
    first = registry.register(None, (extract,), Run)
    with pytest.raises(DefinitionError) as caught:
        registry.register("extract", (find_changes, count), Run)
    message = str(caught.value)
    assert message.startswith("workflow name = 'extract': is already registered with other code")
    assert f"{__name__}.extract" in message
    assert f"{__name__}.find_changes → {__name__}.count" in message
    assert message.endswith("give one of them another name, for example 'extract-2'")
    assert registry.find("extract") is first


def test_functions_made_inside_functions_are_registered_by_name_too() -> None:
    def workflow_for(limit: int) -> Any:
        def limited(table: Table) -> int:
            return limit

        return limited

    registry = Registry()
    small = workflow_for(1)
    registry.register("small", (small,), Run)
    registry.register("large", (workflow_for(100),), Run)
    assert registry.names() == ("large", "small")
    assert registry.find(small).name == "small"


def test_a_function_with_two_names_is_found_by_either_but_not_by_itself() -> None:
    registry = Registry()
    registry.register("nightly", (extract,), Run)
    registry.register("hourly", (extract,), Run)
    assert registry.find("nightly").workflow.steps == registry.find("hourly").workflow.steps
    with pytest.raises(DefinitionError, match=r"'extract' is registered as nightly and as hourly"):
        registry.find(extract)


class Loader:
    def load(self, table: Table) -> None: ...


@dataclass
class Unhashable:
    limit: int

    def __call__(self, table: Table) -> None: ...


def test_bound_methods_and_unhashable_callables_are_found_by_themselves() -> None:
    registry = Registry()
    loader, unhashable = Loader(), Unhashable(3)
    registry.register(None, (loader.load,), Run)
    registry.register(None, (unhashable,), Run)
    assert registry.find(loader.load).name == "load"
    assert registry.find(unhashable).name == "Unhashable"
    with pytest.raises(UnknownWorkflow, match="'load'"):
        registry.find(Loader().load)


@pytest.mark.parametrize(
    ("name", "steps", "parts"),
    [
        (None, (lambda: 1,), ["a lambda has no name", "write def", "give a name"]),
        (None, (find_changes, count), ["a workflow of 2 steps needs a name"]),
        (None, (), ["needs a name"]),
        ("empty", (), ["workflow 'empty' has no steps"]),
        ("", (extract,), ["workflow name = ''", "must not be empty", "for example"]),
        ("a\nb", (extract,), ["workflow name = 'a\\nb'", "control characters", "for example"]),
        (7, (extract,), ["workflow name = 7", "must be a string"]),
        (None, (bare,), ["workflow 'bare'", "step 'bare'", "no declared type", "value: YourType"]),
        (None, (anything,), ["step 'anything'", "dict[str, Any] for any JSON object"]),
        (None, (any_object,), ["step 'any_object'", "no declared type"]),
        (None, (opaque,), ["workflow 'opaque'", "input type Opaque", "a pydantic model"]),
        (None, (unfinished,), ["step 'unfinished'", "'Missing' is not defined"]),
        ("odd", (extract, count), ["returns None", "'count' takes list[int]"]),
    ],
)
def test_what_cannot_be_registered_is_refused_with_what_to_write(
    name: Any, steps: tuple[Any, ...], parts: list[str]
) -> None:
    registry = Registry()
    with pytest.raises(DefinitionError) as caught:
        registry.register(name, steps, Run)
    message = str(caught.value)
    assert [part for part in parts if part not in message] == []
    assert message.splitlines() == [message]
    assert registry.names() == ()


def test_a_lambda_may_be_registered_under_a_name() -> None:
    registry = Registry()
    assert registry.register("noop", (lambda: None,), Run).input_type.name == "None"


@pytest.mark.parametrize("reference", ["extract", "os:system", "os.system", extract, "", "\ud800"])
def test_what_is_not_registered_is_unknown_and_nothing_is_imported_for_it(reference: Any) -> None:
    loaded = set(sys.modules)
    with pytest.raises(UnknownWorkflow):
        Registry().find(reference)
    assert set(sys.modules) == loaded


def test_a_workflow_of_another_registry_is_not_taken_for_ours() -> None:
    registry = Registry()
    stranger = Workflow("extract", (report,), Run)
    with pytest.raises(UnknownWorkflow):
        registry.find(stranger)
    registry.register(None, (extract,), Run)
    with pytest.raises(DefinitionError, match="other code"):
        registry.find(stranger)


def test_two_spellings_of_one_name_are_one_workflow() -> None:
    registry = Registry()
    registry.register("caf\u00e9", (extract,), Run)
    assert registry.find("cafe\u0301").name == "caf\u00e9"


@pytest.mark.parametrize("flag", ["keep_output", "stop_when_cut_off"])
def test_a_flag_is_true_or_false_and_the_same_everywhere(flag: str) -> None:
    hw = Headway()
    wish: dict[str, Any] = {flag: True}
    hw.workflow("load", **wish)(extract)
    hw.workflow("load", **wish)(extract)
    assert getattr(hw.registry.find("load"), flag) is True
    with pytest.raises(DefinitionError, match=f"already registered with another .*{flag}="):
        hw.workflow("load")(extract)
    wrong: dict[str, Any] = {flag: "yes"}
    with pytest.raises(DefinitionError) as refused:
        hw.workflow("other", **wrong)
    told = f"{flag} = 'yes': must be True or False; for example {flag}=True"
    assert str(refused.value) == told
