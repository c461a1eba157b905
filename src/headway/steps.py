"""What a function's signature says about it as a step of a workflow, and what may be a step."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from headway.errors import DefinitionError

Function = Callable[..., Any]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_PROMOTED = {float: (int,), complex: (int, float)}


@dataclass(frozen=True)
class Step:
    """One link of a workflow: a function, and what its signature says about it.

    >>> def load(name: str) -> int: ...
    >>> step = Step.of(load, context_type=dict)
    >>> step.name, step.takes_value, step.takes_context, step.is_async
    ('load', True, False, False)
    """

    name: str
    function: Function
    is_async: bool = field(compare=False)
    takes_value: bool = field(compare=False)
    takes_context: bool = field(compare=False)
    value_type: Any = field(compare=False)
    return_type: Any = field(compare=False)

    @classmethod
    def of(cls, function: Function, context_type: type) -> "Step":
        """Read *function*'s signature; what cannot be a step is refused with what to write.

        >>> Step.of(lambda: 1, context_type=dict).takes_value
        False
        """
        name = function_name(function)
        _refuse_what_is_no_step(function, name)
        hints = _hints(function, name)
        value, takes_context = _shape(name, _parameters(function, name), hints, context_type)
        return cls(
            name=name,
            function=function,
            is_async=inspect.iscoroutinefunction(_called(function)),
            takes_value=value is not None,
            takes_context=takes_context,
            value_type=hints.get(value.name, Any) if value else None,
            return_type=hints.get("return", Any),
        )

    def arguments(self, value: Any, context: Any) -> tuple[Any, ...]:
        """What the function is called with: those of the two it asks for.

        >>> Step.of(lambda name: name, context_type=dict).arguments("users", {})
        ('users',)
        """
        return (value,) * self.takes_value + (context,) * self.takes_context

    def call(self, value: Any, context: Any) -> Any:
        """Call the function with those of the two it asks for: for every run, and no detour.

        >>> Step.of(lambda name: name.upper(), context_type=dict).call("users", {})
        'USERS'
        """
        if self.takes_value:
            return self.function(value, context) if self.takes_context else self.function(value)
        return self.function(context) if self.takes_context else self.function()

    def feeds(self, following: "Step") -> bool:
        """Whether what this step returns fits what *following* takes, as far as classes tell.

        >>> def count() -> int: ...
        >>> def greet(name: str) -> None: ...
        >>> Step.of(count, context_type=dict).feeds(Step.of(greet, context_type=dict))
        False
        """
        return not following.takes_value or _fits(self.return_type, following.value_type)


def function_name(function: Function) -> str:
    """The name a function goes by: its own, a partial's function's, or a callable's class's.

    >>> function_name(partial(print, "x"))
    'print'
    """
    bare = _bare_function(function)
    return str(getattr(bare, "__name__", type(bare).__name__))


def type_name(annotation: Any) -> str:
    """How a person would write *annotation*.

    >>> type_name(list[int]), type_name(str | None), type_name(None)
    ('list[int]', 'str | None', 'None')
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(map(type_name, arguments))
    if isinstance(origin, type):
        return f"{origin.__name__}[{', '.join(map(type_name, arguments))}]"
    if annotation is None or annotation is NoneType:
        return "None"
    if origin is None and hasattr(annotation, "__name__"):
        return str(annotation.__name__)
    return "..." if annotation is ... else str(annotation).replace("typing.", "")


def _bare_function(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


def _called(function: Any) -> Any:
    """The function that runs: itself, a partial's, or the ``__call__`` of a callable object."""
    bare = _bare_function(function)
    return bare if inspect.isroutine(bare) else type(bare).__call__


def _refuse_what_is_no_step(function: Any, name: str) -> None:
    if isinstance(_bare_function(function), type) or not callable(function):
        raise DefinitionError(f"step {function!r} is not a function; write def and pass its name")
    called = _called(function)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise DefinitionError(
            f"step {name!r} is a generator, whose body would never run; "
            "return a list instead of using yield"
        )


def _hints(function: Function, name: str) -> dict[str, Any]:
    try:
        return get_type_hints(_called(function), include_extras=True)
    except Exception as error:
        raise DefinitionError(
            f"step {name!r}: its annotations cannot be resolved ({error}); "
            "define these types at the top of the module, before the function"
        ) from error


def _parameters(function: Function, name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise DefinitionError(
            f"step {name!r} has no signature that can be read; "
            f"wrap it: def step(value: YourType): return {name}(value)"
        ) from error


def _shape(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], context_type: type
) -> tuple[inspect.Parameter | None, bool]:
    """Which parameter takes the value, and whether the next one takes the context."""
    rest = list(parameters)

    def is_context(parameter: inspect.Parameter) -> bool:
        return _asks_for(context_type, hints.get(parameter.name, Any))

    def next_is(context: bool) -> bool:
        return bool(rest) and rest[0].kind in _POSITIONAL and is_context(rest[0]) is context

    value = rest.pop(0) if next_is(context=False) else None
    context = rest.pop(0) if next_is(context=True) else None
    for parameter in rest:
        if parameter.default is parameter.empty or is_context(parameter):
            kind = type_name(context_type)
            raise DefinitionError(
                f"step {name!r}: parameter {str(parameter)!r} is neither the value (the first one) "
                f"nor the context (the next one, annotated {kind}); write {name}(), "
                f"{name}(value: YourType), {name}(context: {kind}) or "
                f"{name}(value: YourType, context: {kind})"
            )
    return value, context is not None


def _asks_for(context_type: type, annotation: Any) -> bool:
    bases = [base for base in context_type.__mro__ if base is not object]
    return any(alternative in bases for alternative in _alternatives(annotation))


def _alternatives(annotation: Any) -> list[Any]:
    """The members of a union, each without its ``Annotated`` or ``[...]``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _alternatives(arguments[0])
    if origin in (Union, UnionType):
        return [single for member in arguments for single in _alternatives(member)]
    return [origin or annotation]


def _fits(returned: Any, taken: Any) -> bool:
    if returned is NoneType:
        return any(_is_a(NoneType, alternative) for alternative in _alternatives(taken))
    comparable = all(
        isinstance(kind, type) and get_origin(kind) is None for kind in (returned, taken)
    )
    return returned is Any or not comparable or _is_a(returned, taken)


def _is_a(given: type, wanted: Any) -> bool:
    if wanted is Any or not isinstance(wanted, type):
        return True
    try:
        return issubclass(given, wanted) or given in _PROMOTED.get(wanted, ())
    except TypeError:  # TypedDicts and most protocols do not answer
        return given is not NoneType
