"""The short way for most short jobs: one async step that asks for nothing but its value.

What there is to see around a step is done once, at its end. The long way is in ``attempt``.
"""

import asyncio
import time
from typing import Any

from headway.definition.inputs import InputType
from headway.domain.execution import Execution, ExecutionState, Outcome, StepRun
from headway.runner.attempt import ended_by
from headway.runner.cancellation import CancellationRegistry
from headway.runner.secrets import RunSecrets
from headway.runner.stopwatch import shown_step
from headway.steps import Step
from headway.workflow import Workflow


def only_step(workflow: Workflow[Any], execution: Execution) -> Step | None:
    """The step of *workflow* if it is the only one, has a short way, and was claimed with it: then
    it is on record as running, and nobody wanted it stopped.

    >>> async def load(name: str) -> None: ...
    >>> workflow = Workflow("load", (load,), context_type=dict)
    >>> only_step(workflow, execution).name  # doctest: +SKIP
    'load'
    """
    step = workflow.only_step
    if step is None or not step.is_async or step.takes_context:
        return None
    return step if execution.was_claimed_with(step.name) else None


async def run_only_step(
    step: Step,
    value: Any,
    execution: Execution,
    cancellations: CancellationRegistry,
    loop: asyncio.AbstractEventLoop | None,
    *,
    input_type: InputType,
    stop_when_cut_off: bool,
) -> Outcome:
    """Run *step* to whatever end it takes, as :func:`~headway.runner.attempt.attempt` does."""
    handle = cancellations.register(execution.id, stop_when_cut_off=stop_when_cut_off)
    task = asyncio.current_task(loop)
    assert task is not None
    handle.attach_task(task)
    began = time.monotonic()
    outcome: Outcome | None = None
    try:
        cancellations.check_lease(handle, execution.owner)
        handle.refuse_if_requested(step.name)
        await step.call(value, None)
    except BaseException as error:  # SystemExit in user code must not end the worker
        secrets = RunSecrets(input_type, execution.input, value)
        outcome = ended_by(error, step.name, handle, secrets)
    finally:
        handle.attach(None)
        cancellations.unregister(execution.id)
    started_at = execution.started_at or execution.dispatched_at
    steps = (StepRun(shown_step(step.name), started_at, round(time.monotonic() - began, 6)),)
    if outcome is None:
        return Outcome(ExecutionState.COMPLETED, None, None, (), steps)
    return outcome._replace(steps=steps)
