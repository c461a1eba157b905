"""Registering workflows: ``hw.workflow`` as decorator and as call."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, overload

from headway.definition.registry import RegisteredWorkflow, Registry
from headway.domain.isolation import asked_for
from headway.domain.text import shown
from headway.errors import DefinitionError
from headway.run import Run
from headway.steps import function_name, type_name
from headway.workflow import Workflow

F = TypeVar("F", bound=Callable[..., Any])


class Workflows:
    """The part of an application that knows its workflows."""

    def __init__(self) -> None:
        self.registry = Registry()

    @overload
    def workflow(self, name_or_function: F, /) -> F: ...

    @overload
    def workflow(
        self,
        name_or_function: str,
        /,
        *,
        steps: Iterable[Callable[..., Any]],
        isolated: bool = False,
        max_memory: int | str | None = None,
        keep_output: bool = False,
        stop_when_cut_off: bool = False,
    ) -> Workflow[Run]: ...

    @overload
    def workflow(
        self,
        name_or_function: str | None = None,
        /,
        *,
        isolated: bool = False,
        max_memory: int | str | None = None,
        keep_output: bool = False,
        stop_when_cut_off: bool = False,
    ) -> Callable[[F], F]: ...

    def workflow(
        self,
        name_or_function: Any = None,
        /,
        *,
        steps: Iterable[Callable[..., Any]] | None = None,
        isolated: bool = False,
        max_memory: int | str | None = None,
        keep_output: bool = False,
        stop_when_cut_off: bool = False,
    ) -> Any:
        """Register a workflow: a decorated function, or a name with a chain of steps.

        A step takes the previous step's value and, if a parameter is annotated :class:`Run`, the
        run it belongs to. Sync and async steps mix freely. With *isolated*, every run gets a
        process of its own, which is killed if it does not stop in time, and may use at most
        *max_memory*. With *keep_output*, what the last step returns is kept as JSON. With
        *stop_when_cut_off*, a run is stopped when its worker cannot reach the database for so
        long that another one may start it.

        >>> from headway import Headway
        >>> hw = Headway()
        >>> def extract(table: str) -> list[int]: ...
        >>> async def load(rows: list[int], run: Run) -> None: ...
        >>> hw.workflow("import", steps=(extract, load), isolated=True, max_memory="2GB").name
        'import'
        """
        isolation = asked_for(isolated, max_memory)
        wishes: Any = {"keep_output": keep_output, "stop_when_cut_off": stop_when_cut_off}
        for name, wish in wishes.items():
            _check_flag(name, wish)
        register: Callable[..., RegisteredWorkflow] = partial(
            self.registry.register, context_type=Run, isolation=isolation, **wishes
        )
        if steps is not None:
            return register(name_or_function, steps).workflow
        if callable(name_or_function):
            return _registered(register, None, name_or_function)
        if name_or_function is None or isinstance(name_or_function, str):
            return partial(_registered, register, name_or_function)
        raise DefinitionError(
            f"hw.workflow takes a function or a name, not {type_name(type(name_or_function))}; "
            "write @hw.workflow, or @hw.workflow('extract-users')"
        )


def _registered(register: Callable[..., RegisteredWorkflow], name: str | None, function: F) -> F:
    register(name, (function,))
    return function


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise DefinitionError(
            f"{name} = {shown(value)}: must be True or False; for example {name}=True"
        )


def excluded_by_name(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with workflows in ``exclude_from_max_active_jobs`` by name, however given.

    >>> excluded_by_name({"exclude_from_max_active_jobs": [print]})
    {'exclude_from_max_active_jobs': ('print',)}
    """
    excluded = settings.get("exclude_from_max_active_jobs")
    if not isinstance(excluded, list | tuple | set | frozenset):
        return settings
    names = [_workflow_name(one) for one in excluded]
    return settings | {"exclude_from_max_active_jobs": tuple(names)}


def _workflow_name(one: Any) -> Any:
    if isinstance(one, Workflow):
        return one.name
    return function_name(one) if callable(one) else one
