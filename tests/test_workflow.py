"""The engine: shapes of steps, checks when a workflow is built, and what running one does."""

import asyncio
import functools
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import pytest
from typing_extensions import TypedDict

from headway.errors import DefinitionError, JobCancelled, StepFailed
from headway.steps import Step, function_name, type_name
from headway.workflow import Workflow

Function = Callable[..., Any]


class Env:
    """What every environment of these tests has."""


@dataclass
class Context(Env):
    label: str = "context"


class NarrowContext(Context):
    pass


class Table:
    pass


class BigTable(Table):
    pass


class Row(TypedDict):
    name: str


class Sized(Protocol):
    size: int


async def go_on(step: str) -> None:
    pass


def run(workflow: Workflow[Context], value: Any = None, context: Context | None = None) -> Any:
    running = workflow.run(
        value, context or Context(), before_step=go_on, call_sync=asyncio.to_thread
    )
    return asyncio.run(running)


def no_parameters() -> None: ...
def only_value(table: Table) -> None: ...
def bare_value(table): ...  # type: ignore[no-untyped-def]
def only_context(run: Context) -> None: ...
def both(table: Table, run: Context) -> None: ...
def base_of_context(table: Table, run: Env) -> None: ...
def context_or_none(table: Table, run: Context | None = None) -> None: ...
def annotated_context(table: Table, run: Annotated[Context, "the run"]) -> None: ...
def string_annotations(table: "Table", run: "Context") -> None: ...
def positional_only(table: Table, run: Context, /) -> None: ...
def more_with_defaults(
    table: Table, run: Context, limit: int = 3, *, dry: bool = False
) -> None: ...
def default_without_context(table: Table, limit: int = 3) -> None: ...
def default_after_context(run: Context, limit: int = 3) -> None: ...
def value_with_default(limit: int = 3) -> None: ...
def object_is_a_value(value: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "takes_value", "takes_context", "value_type"),
    [
        (no_parameters, False, False, None),
        (only_value, True, False, Table),
        (bare_value, True, False, Any),
        (only_context, False, True, None),
        (both, True, True, Table),
        (base_of_context, True, True, Table),
        (context_or_none, True, True, Table),
        (annotated_context, True, True, Table),
        (string_annotations, True, True, Table),
        (positional_only, True, True, Table),
        (more_with_defaults, True, True, Table),
        (default_without_context, True, False, Table),
        (default_after_context, False, True, None),
        (value_with_default, True, False, int),
        (object_is_a_value, True, False, object),
    ],
)
def test_a_step_is_given_what_its_signature_asks_for(
    function: Function, takes_value: bool, takes_context: bool, value_type: Any
) -> None:
    step = Step.of(function, Context)
    assert (step.name, step.function) == (function.__name__, function)
    assert (step.takes_value, step.takes_context) == (takes_value, takes_context)
    assert step.value_type is value_type
    value, context = object(), Context()
    expected = [value] * takes_value + [context] * takes_context
    assert list(step.arguments(value, context)) == expected


def second_value(table: Table, other: Table) -> None: ...
def bare_context(table: Table, run): ...  # type: ignore[no-untyped-def]
def context_first(run: Context, table: Table) -> None: ...
def two_contexts(run: Context, again: Context) -> None: ...
def late_context(table: Table, limit: int = 3, run: Context | None = None) -> None: ...
def star(*args: Table) -> None: ...
def star_star(table: Table, **options: int) -> None: ...
def keyword_only(table: Table, *, limit: int) -> None: ...
def keyword_only_context(table: Table, *, run: Context) -> None: ...
def narrower_context(table: Table, run: NarrowContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "parameter"),
    [
        (second_value, "other: "),
        (bare_context, "'run'"),
        (context_first, "table: "),
        (two_contexts, "again: "),
        (late_context, "run: "),
        (star, "*args: "),
        (star_star, "**options: "),
        (keyword_only, "limit: int"),
        (keyword_only_context, "run: "),
        (narrower_context, "run: "),
    ],
)
def test_any_other_shape_is_refused_with_the_parameter_and_what_to_write(
    function: Function, parameter: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        Workflow("w", (function,), Context)
    name = function.__name__
    message = str(caught.value)
    assert f"step {name!r}" in message
    assert parameter in message
    assert f"write {name}(), {name}(value: YourType), {name}(context: Context)" in message
    assert f"{name}(value: YourType, context: Context)" in message


def generator(table: Table) -> Iterator[int]:
    yield 1


async def async_generator(table: Table) -> Any:
    yield 1


def unresolvable(table: "NotYetDefined") -> None: ...  # type: ignore[name-defined]  # noqa: F821


class GeneratorObject:
    def __call__(self) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (generator, ["'generator'", "would never run", "return a list"]),
        (async_generator, ["'async_generator'", "would never run"]),
        (GeneratorObject(), ["'GeneratorObject'", "would never run"]),
        (unresolvable, ["'unresolvable'", "name 'NotYetDefined' is not defined", "top of"]),
        (Table, ["Table", "is not a function", "write def"]),
        ("extract", ["'extract'", "is not a function"]),
        (None, ["None", "is not a function"]),
        (min, ["'min'", "no signature", "wrap it"]),
    ],
)
def test_what_is_no_step_is_refused_with_the_reason(function: Any, parts: list[str]) -> None:
    with pytest.raises(DefinitionError) as caught:
        Workflow("w", (function,), Context)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_types_defined_inside_a_function_work_unless_they_are_only_named_in_a_string() -> None:
    class Local: ...

    def direct(value: Local) -> None: ...
    def by_name(value: "Local") -> None: ...

    assert Step.of(direct, Context).value_type is Local
    with pytest.raises(DefinitionError, match="'by_name': its annotations cannot be resolved"):
        Step.of(by_name, Context)


class Loader:
    def __call__(self, table: Table, run: Context) -> int:
        return 1

    async def load(self, table: Table) -> int:
        return 1


class AsyncLoader:
    async def __call__(self, table: Table) -> int:
        return 1


def with_limit(limit: int, table: Table, run: Context) -> int:
    return limit


async def later(limit: int, table: Table) -> int:
    return limit


@pytest.mark.parametrize(
    ("function", "name", "is_async"),
    [
        (Loader(), "Loader", False),
        (AsyncLoader(), "AsyncLoader", True),
        (Loader().load, "load", True),
        (partial(with_limit, 3), "with_limit", False),
        (partial(partial(later), 3), "later", True),
        (functools.lru_cache(only_value), "only_value", False),
    ],
)
def test_methods_partials_and_callable_objects_are_steps_like_any_other(
    function: Function, name: str, is_async: bool
) -> None:
    step = Step.of(function, Context)
    assert (step.name, step.is_async) == (name, is_async)
    assert function_name(function) == name
    assert step.value_type is Table


def returning(annotation: Any, name: str = "first") -> Function:
    def function() -> None: ...

    function.__name__ = name
    function.__annotations__ = {"return": annotation} if annotation is not ... else {}
    return function


def taking(annotation: Any, name: str = "second") -> Function:
    def function(value: Any) -> None: ...

    function.__name__ = name
    function.__annotations__ = {"value": annotation} if annotation is not ... else {}
    return function


@pytest.mark.parametrize(
    ("returned", "taken"),
    [
        (Table, Table),
        (BigTable, Table),
        (Table, object),
        (list, Sequence),
        (bool, int),
        (int, float),
        (float, complex),
        (Table, ...),
        (..., Table),
        (Any, Table),
        (Table, Any),
        (None, ...),
        (None, Any),
        (None, None),
        (None, object),
        (None, Table | None),
        (Table | None, Table),
        (list[int], list[str]),
        (list[int], Table),
        (Table, list[int]),
        (str, Literal["a"]),
        (dict, Row),
        (Row, dict),
        (Table, Sized),
    ],
)
def test_steps_whose_annotations_fit_or_cannot_be_compared_make_a_workflow(
    returned: Any, taken: Any
) -> None:
    steps = (returning(returned), taking(taken))
    assert len(Workflow("w", steps, Context).steps) == 2


@pytest.mark.parametrize(
    ("returned", "taken", "parts"),
    [
        (Table, BigTable, ("returns Table", "takes BigTable")),
        (int, str, ("returns int", "takes str")),
        (float, int, ("returns float", "takes int")),
        (None, Table, ("returns None", "takes Table")),
        (None, Row, ("returns None", "takes Row")),
        (None, Sized, ("returns None", "takes Sized")),
        (None, list[int], ("returns None", "takes list[int]")),
        (None, int | str, ("returns None", "takes int | str")),
        (None, Annotated[int, "limit"], ("returns None", "takes int")),
    ],
)
def test_steps_that_do_not_fit_are_refused_naming_both_steps_and_both_types(
    returned: Any, taken: Any, parts: tuple[str, str]
) -> None:
    with pytest.raises(DefinitionError) as caught:
        Workflow("w", (returning(returned), taking(taken)), Context)
    assert (
        str(caught.value) == f"workflow 'w': step 'first' {parts[0]}, but step 'second' {parts[1]}"
    )


def test_a_step_that_takes_no_value_may_follow_anything() -> None:
    assert Workflow("w", (returning(None), only_context), Context)


@pytest.mark.parametrize(
    ("steps", "parts"),
    [
        ((), ["workflow 'w' has no steps; write steps=(first, second)"]),
        ((both, both), ["two steps are named 'both'", "a name of its own"]),
        (both, ["steps is a function", "steps=(both,)"]),
    ],
)
def test_a_workflow_of_no_or_equally_named_steps_is_refused(steps: Any, parts: list[str]) -> None:
    with pytest.raises(DefinitionError) as caught:
        Workflow("w", steps, Context)
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("function", "input_type"),
    [
        (both, Table),
        (only_context, None),
        (bare_value, Any),
        (taking(list[int]), list[int]),
        (taking(Annotated[int, "limit"]), Annotated[int, "limit"]),
    ],
)
def test_the_input_type_is_what_the_first_step_takes(function: Function, input_type: Any) -> None:
    assert Workflow("w", (function,), Context).input_type == input_type


def test_a_workflow_knows_its_step_if_it_is_the_only_one() -> None:
    one = Workflow("w", (both,), Context)
    assert one.only_step is one.steps[0]
    assert Workflow("w", (no_parameters, only_context), Context).only_step is None


def test_a_workflow_cannot_be_changed_and_equals_its_like() -> None:
    workflow = Workflow("w", (both,), Context)
    with pytest.raises(AttributeError):
        workflow.name = "other"  # type: ignore[misc]
    assert workflow == Workflow("w", (both,), Context)
    assert workflow != Workflow("w", (only_value,), Context)
    assert hash(workflow) == hash(Workflow("w", (both,), Context))


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (int, "int"),
        (None, "None"),
        (type(None), "None"),
        (Table, "Table"),
        (list[Table], "list[Table]"),
        (dict[str, Any], "dict[str, Any]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Table | None, "Table | None"),
        (Annotated[int, "limit"], "int"),
        (Literal["a", "b"], "Literal['a', 'b']"),
    ],
)
def test_a_type_is_named_as_a_person_would_write_it(annotation: Any, name: str) -> None:
    assert type_name(annotation) == name


def test_sync_and_async_steps_mix_and_hand_their_values_on() -> None:
    def double(value: int) -> int:
        return 2 * value

    async def label(value: int, run: Context) -> str:
        await asyncio.sleep(0)
        return f"{run.label}: {value}"

    def shout(text: str) -> str:
        return text.upper()

    assert run(Workflow("w", (double, label, shout), Context), 21) == "CONTEXT: 42"


def test_sync_steps_go_through_call_sync_and_async_ones_do_not() -> None:
    def in_thread(value: int) -> int:
        return value + 1

    async def in_loop(value: int) -> int:
        return value + 1

    called: list[Any] = []

    async def call_sync(function: Function, *arguments: Any) -> Any:
        called.append(arguments)
        return function(*arguments)

    workflow = Workflow("w", (in_thread, in_loop), Context)
    result = asyncio.run(workflow.run(1, Context(), before_step=go_on, call_sync=call_sync))
    assert result == 3
    assert called == [(in_thread, 1)]


def test_a_coroutine_handed_back_by_a_plain_function_is_awaited() -> None:
    async def load() -> int:
        return 7

    @functools.wraps(load)
    def decorated() -> Awaitable[int]:
        return load()

    async def broken() -> int:
        raise KeyError("users")

    assert run(Workflow("w", (decorated,), Context)) == 7
    with pytest.raises(StepFailed, match="'second'") as caught:
        run(Workflow("w", (returning(None), named("second", lambda: broken())), Context))
    assert caught.value.__cause__ is not None
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert [frame.name for frame in frames] == ["broken"]


def named(name: str, function: Function) -> Function:
    function.__name__ = name
    return function


def test_before_step_is_awaited_with_each_name_and_may_stop_the_run() -> None:
    seen: list[str] = []

    async def stop_at_second(step: str) -> None:
        seen.append(step)
        if step == "second":
            raise JobCancelled("asked to stop")

    steps = (
        named("first", lambda: seen.append("ran first")),
        named("second", lambda: seen.append("ran second")),
    )
    running = Workflow("w", steps, Context).run(
        None, Context(), before_step=stop_at_second, call_sync=asyncio.to_thread
    )
    with pytest.raises(JobCancelled, match="asked to stop"):
        asyncio.run(running)
    assert seen == ["first", "ran first", "second"]


def fails(value: Any) -> None:
    raise value


async def fails_later(value: Any) -> None:
    await asyncio.sleep(0)
    raise value


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("function", [fails, fails_later])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad row"),
        Unprintable(),
        StepFailed("inner"),
        ExceptionGroup("two", [KeyError(1)]),
        SystemExit(3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_names_its_step_and_keeps_the_original_starting_in_user_code(
    function: Function, error: BaseException
) -> None:
    error.__traceback__ = None
    with pytest.raises(StepFailed) as caught:
        run(Workflow("w", (function,), Context), error)
    assert caught.value.step == function.__name__
    assert str(caught.value) == f"step {function.__name__!r} failed"
    assert caught.value.__cause__ is error
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.name for frame in frames] == [function.__name__]


def test_a_stop_iteration_in_a_thread_fails_the_step_instead_of_hanging_the_run() -> None:
    def first_row(rows: list[int]) -> int:
        return next(iter(rows))

    with pytest.raises(StepFailed) as caught:
        run(Workflow("w", (first_row,), Context), [])
    assert isinstance(caught.value.__cause__, StopIteration)


def test_sys_exit_in_a_step_fails_the_step_instead_of_ending_the_worker() -> None:
    with pytest.raises(StepFailed) as caught:
        run(Workflow("w", (named("leave", lambda: sys.exit(1)),), Context))
    assert isinstance(caught.value.__cause__, SystemExit)


@pytest.mark.parametrize("function", [fails, fails_later])
@pytest.mark.parametrize("error", [JobCancelled("stop"), asyncio.CancelledError()])
def test_cancellation_passes_through_unwrapped(function: Function, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        run(Workflow("w", (function,), Context), error)
    assert caught.value.__cause__ is None


def test_what_call_sync_itself_raises_is_not_the_failure_of_the_step() -> None:
    async def closed(*arguments: Any) -> Any:
        raise RuntimeError("the pool is shut down")

    running = Workflow("w", (no_parameters,), Context).run(
        None, Context(), before_step=go_on, call_sync=closed
    )
    with pytest.raises(RuntimeError, match="shut down"):
        asyncio.run(running)


def test_an_administrative_workflow_runs_now_even_inside_an_event_loop() -> None:
    @dataclass(frozen=True)
    class State:
        queued: int = 0

    def load(state: State, env: Context) -> State:
        return State(state.queued + 1)

    def create(state: State, env: Context) -> State:
        return State(state.queued * 10)

    workflow = Workflow("manager", (load, create), Context)

    async def inside() -> Any:
        return workflow.run_now(State(), Context())

    assert workflow.run_now(State(), Context()) == asyncio.run(inside()) == State(10)


def test_run_now_reports_the_failing_step() -> None:
    with pytest.raises(StepFailed) as caught:
        Workflow("w", (fails,), Context).run_now(ValueError("bad"), Context())
    assert caught.value.step == "fails"
    assert isinstance(caught.value.__cause__, ValueError)


async def sleeps() -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("function", "part"),
    [(sleeps, "step 'sleeps' is async"), (named("hidden", lambda: sleeps()), "a step waits")],
)
def test_run_now_refuses_steps_that_wait(function: Function, part: str) -> None:
    with pytest.raises(DefinitionError, match=part):
        Workflow("w", (function,), Context).run_now(None, Context())
