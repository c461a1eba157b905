"""Registering workflows: ``hw.workflow`` as decorator and as call."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from headway.definition.registry import Registry
from headway.domain.isolation import Isolation, asked_for
from headway.domain.text import shown
from headway.errors import DefinitionError
from headway.run import Run
from headway.steps import type_name
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
    ) -> Any:
        """Register a workflow: a decorated function, or a name with a chain of steps.

        A step takes the previous step's value and, if a parameter is annotated :class:`Run`, the
        run it belongs to. Sync and async steps mix freely. With *isolated*, every run gets a
        process of its own, which is killed if it does not stop in time, and may use at most
        *max_memory*. With *keep_output*, what the last step returns is kept as JSON.

        >>> from headway import Headway
        >>> hw = Headway()
        >>> def extract(table: str) -> list[int]: ...
        >>> async def load(rows: list[int], run: Run) -> None: ...
        >>> hw.workflow("import", steps=(extract, load), isolated=True, max_memory="2GB").name
        'import'
        """
        isolation = asked_for(isolated, max_memory)
        if not isinstance(keep_output, bool):
            raise DefinitionError(
                f"keep_output = {shown(keep_output)}: must be True or False; for example "
                "keep_output=True"
            )
        if steps is not None:
            return self.registry.register(
                name_or_function, steps, Run, isolation, keep_output=keep_output
            ).workflow
        if callable(name_or_function):
            return self._register(None, name_or_function, isolation, keep_output)
        if name_or_function is None or isinstance(name_or_function, str):
            return lambda function: self._register(
                name_or_function, function, isolation, keep_output
            )
        raise DefinitionError(
            f"hw.workflow takes a function or a name, not {type_name(type(name_or_function))}; "
            "write @hw.workflow, or @hw.workflow('extract-users')"
        )

    def _register(
        self, name: str | None, function: F, isolation: Isolation | None, keep_output: bool
    ) -> F:
        self.registry.register(name, (function,), Run, isolation, keep_output=keep_output)
        return function
