"""Running a workflow's steps: whatever they do becomes an outcome, never an exception."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

from headway.domain.execution import ExecutionState, Outcome, StepRun
from headway.errors import JobCancelled, StepFailed
from headway.run import Run
from headway.runner.cancellation import Cancellation
from headway.runner.outcome import failed, stopped
from headway.runner.output import kept
from headway.runner.secrets import RunSecrets
from headway.workflow import FAILURES, Workflow, from_its_own_frame


class Watch(Protocol):
    """The parts of one run: its hook around each step, the handle that may stop it, its secrets,
    and the requests to a person that it leaves once it has completed."""

    step: str
    handle: Cancellation
    secrets: RunSecrets
    logger: logging.Logger
    loop: asyncio.AbstractEventLoop | None
    handed_over: tuple[str, ...]

    async def before_step(self, step: str) -> None:
        """Note that *step* starts; raises to stop the run."""

    def steps_that_ran(self) -> tuple[StepRun, ...] | None:
        """The steps with their durations, now that the run is over; None if others know them."""

    async def call_sync(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a sync step."""


async def attempt(
    workflow: Workflow[Run], value: Any, run: Run | None, watch: Watch, *, keep_output: bool
) -> Outcome:
    """Run *workflow* to whatever end it takes; who takes no context needs no *run*."""
    task = asyncio.current_task(watch.loop)
    assert task is not None
    watch.handle.attach_task(task)
    try:
        returned = await workflow.run(
            value, cast(Run, run), before_step=watch.before_step, call_sync=watch.call_sync
        )
    except StepFailed as error:
        return failed(error.step, error.__cause__ or error, watch.secrets.text)
    except BaseException as error:  # SystemExit in user code must not end the worker
        return ended_by(error, watch.step, watch.handle, watch.secrets)
    finally:
        watch.handle.attach(None)
    output = kept(returned, watch.logger, watch.secrets.plain) if keep_output else None
    hand_over = tuple(map(watch.secrets.text, watch.handed_over))
    return Outcome(ExecutionState.COMPLETED, None, output, hand_over, watch.steps_that_ran())


def ended_by(error: BaseException, step: str, handle: Cancellation, secrets: RunSecrets) -> Outcome:
    """What becomes of a run that has ended with *error* in this *step*."""
    asked = isinstance(error, asyncio.CancelledError) and handle.requested
    if asked or isinstance(error, JobCancelled):
        return stopped(step, handle.reason, error, secrets.text)
    # If it was cancelled, something inside the step was, and not the run.
    shown = from_its_own_frame(error) if isinstance(error, FAILURES) else error
    return failed(step, shown, secrets.text)
