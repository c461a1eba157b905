"""The workflow engine: a workflow is a literal tuple of steps, run in order.

User workflows and headway's own (ManifestManager, JobDispatcher, JobRunner) run on it alike.
It knows neither tables nor settings; what happens around a step is handed in by the caller.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, TypeVar

from headway.errors import DefinitionError, JobCancelled, StepFailed
from headway.steps import Function, Step, function_name, type_name

C = TypeVar("C")

BeforeStep = Callable[[str], Awaitable[None]]
"""Awaited with a step's name before it starts: records progress, raises to stop the run."""

CallSync = Callable[..., Awaitable[Any]]
"""``call_sync(function, *arguments)`` calls *function*, usually in a thread.

The function it is handed returns the step's failure instead of raising it, so whatever
``call_sync`` raises (a pool that is shut down, say) is its own and reaches the caller unwrapped.
"""

FAILURES = (Exception, SystemExit)
"""What a step may raise without stopping more than its run."""
_Outcome = tuple[Any, BaseException | None]


@dataclass(frozen=True, init=False)
class Workflow(Generic[C]):
    """A named tuple of steps, each taking the previous one's value, checked when it is built.

    >>> def double(value: int) -> int:
    ...     return 2 * value
    >>> def describe(value: int) -> str:
    ...     return f"{value} rows"
    >>> Workflow("report", (double, describe), context_type=dict).run_now(21, {})
    '42 rows'
    """

    name: str
    steps: tuple[Step, ...]
    context_type: type[C] = field(compare=False)
    takes_context: bool = field(compare=False)
    only_step: Step | None = field(compare=False)

    def __init__(self, name: str, steps: Iterable[Function], context_type: type[C]) -> None:
        if callable(steps):
            given = function_name(steps)
            raise DefinitionError(f"workflow {name!r}: steps is a function; write steps=({given},)")
        built = tuple(Step.of(function, context_type) for function in steps)
        _check_chain(name, built)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "steps", built)
        object.__setattr__(self, "context_type", context_type)
        object.__setattr__(self, "takes_context", any(step.takes_context for step in built))
        object.__setattr__(self, "only_step", built[0] if len(built) == 1 else None)

    @property
    def input_type(self) -> Any:
        """The annotation of the first step's value: ``None`` without one, ``Any`` if bare.

        >>> def load(name: str) -> None: ...
        >>> Workflow("load", (load,), context_type=dict).input_type
        <class 'str'>
        """
        return self.steps[0].value_type

    async def run(
        self, value: Any, context: C, *, before_step: BeforeStep | None, call_sync: CallSync
    ) -> Any:
        """Run the steps in order and return the last one's value; None watches nothing.

        An ``Exception`` or ``sys.exit`` in a step becomes :class:`StepFailed` with the original
        as its cause; :class:`JobCancelled`, asyncio's cancellation and whatever *before_step*
        raises pass through unwrapped.

        >>> import asyncio
        >>> async def announce(step): print("starting", step)
        >>> async def double(value: int) -> int: return 2 * value
        >>> workflow = Workflow("double", (double,), context_type=dict)
        >>> running = workflow.run(21, {}, before_step=announce, call_sync=asyncio.to_thread)
        >>> asyncio.run(running)
        starting double
        42
        """
        for step in self.steps:
            if before_step is not None:
                await before_step(step.name)
            if not step.is_async:
                value = await _perform(step, step.arguments(value, context), call_sync)
                continue
            try:  # most are async, where speed matters: no detour
                value = await step.call(value, context)
            except JobCancelled:
                raise
            except FAILURES as failure:
                raise StepFailed(step.name) from from_its_own_frame(failure)
        return value

    def run_now(
        self, value: Any, context: C, *, before_step: Callable[[str], None] = lambda step: None
    ) -> Any:
        """Run a workflow of sync steps here and now, without an event loop.

        >>> def count(rows: list) -> int: return len(rows)
        >>> Workflow("count", (count,), context_type=dict).run_now(["a", "b"], {})
        2
        """
        if waiting := [step.name for step in self.steps if step.is_async]:
            raise DefinitionError(
                f"workflow {self.name!r}: step {waiting[0]!r} is async, but run_now takes only "
                "sync steps; write def without async, or await run"
            )

        async def tell(step: str) -> None:
            before_step(step)

        running = self.run(value, context, before_step=tell, call_sync=_call_here)
        try:
            running.send(None)
        except StopIteration as finished:
            return finished.value
        running.close()
        raise DefinitionError(
            f"workflow {self.name!r}: a step waits for something, which run_now cannot; await run"
        )


def _check_chain(name: str, steps: tuple[Step, ...]) -> None:
    if not steps:
        raise DefinitionError(f"workflow {name!r} has no steps; write steps=(first, second)")
    names = [step.name for step in steps]
    for step in names:
        if names.count(step) > 1:
            raise DefinitionError(
                f"workflow {name!r}: two steps are named {step!r}; failures are recorded by "
                "step name, so write one def with a name of its own for each"
            )
    for before, after in pairwise(steps):
        if not before.feeds(after):
            raise DefinitionError(
                f"workflow {name!r}: step {before.name!r} returns {type_name(before.return_type)}, "
                f"but step {after.name!r} takes {type_name(after.value_type)}"
            )


async def _perform(step: Step, arguments: tuple[Any, ...], call_sync: CallSync) -> Any:
    result, error = await call_sync(_attempt, step.function, *arguments)
    # A sync function may hand back a coroutine, too: decorators around async functions do.
    if inspect.iscoroutine(result):
        result, error = await _attempt_to_await(result)
    if isinstance(error, JobCancelled):
        raise error
    if error is not None:
        raise StepFailed(step.name) from error
    return result


# Errors are returned, not raised: asyncio refuses a StopIteration from a thread, so that the run
# would hang, and a SystemExit from one would end the event loop and every other run with it.
def _attempt(function: Function, *arguments: Any) -> _Outcome:
    try:
        return function(*arguments), None
    except FAILURES as error:
        return None, from_its_own_frame(error)


async def _attempt_to_await(result: Awaitable[Any]) -> _Outcome:
    try:
        return await result, None
    except FAILURES as error:
        return None, from_its_own_frame(error)


def from_its_own_frame(error: BaseException) -> BaseException:
    """*error* with a traceback that starts in the step, not in the engine that called it."""
    traceback = error.__traceback__
    return error.with_traceback(traceback.tb_next or traceback) if traceback else error


async def _call_here(function: Function, *arguments: Any) -> Any:
    return function(*arguments)
