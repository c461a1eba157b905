"""What happens around each step of a run: it is recorded, and cancellation is looked for."""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from headway.domain.execution import Execution, StepRun
from headway.domain.text import printable
from headway.runner.cancellation import Cancellation, StopReason
from headway.runner.ownership import stop_reason
from headway.runner.secrets import RunSecrets
from headway.runner.state import RunnerEnv
from headway.runner.stopwatch import Stopwatch
from headway.store import executions
from headway.store.engine import TRANSIENT
from headway.store.executions import Progress

PROGRESS_NOTE_LIMIT = 500


class StepWatch:
    """What happens around each step: it is recorded, and cancellation is looked for."""

    def __init__(
        self, env: RunnerEnv, execution: Execution, handle: Cancellation, secrets: RunSecrets
    ) -> None:
        self.step = execution.workflow
        self.handle = handle
        self.secrets = secrets
        self.logger = secrets.logger(_logger(execution.workflow))
        self.loop = env.loop
        self.handed_over: tuple[str, ...] = ()
        # Asked once for all that is told of one run: nobody is told of that without this.
        self.is_told = env.observer.wants("execution.step")
        self._env = env
        self._execution = execution
        self._stopwatch = Stopwatch(execution.started_at or execution.dispatched_at)

    def steps_that_ran(self) -> tuple[StepRun, ...]:
        """The steps with their durations, now that the run is over."""
        self._stopwatch.end()
        return self._stopwatch.steps

    async def before_step(self, step: str) -> None:
        """Record *step* as running, unless the run was asked to stop."""
        self.step = step
        self._stopwatch.end()
        if self.handle.reason is None and not self._execution.was_claimed_with(step):
            await self._look_into_the_store(step)
        if not self._stopwatch.steps:  # a run that has begun goes on while the database is away
            self._env.cancellations.check_lease(self.handle, self._execution.owner)
        self.handle.refuse_if_requested(step)
        self._stopwatch.begin(step)
        if self.is_told:
            self._env.observer.emit("execution.step", execution_id=self._execution.id, step=step)

    async def _look_into_the_store(self, step: str) -> None:
        try:
            flag = await self._env.call_store(self._note, step)
        except TRANSIENT:
            return  # a database that is away stops no run; the outcome is written when it is back
        if flag is None:
            self.handle.request(StopReason.NOT_OURS)
        elif flag:
            self.handle.request(stop_reason(flag))

    async def call_sync(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a sync step, in a thread if the pool says so."""
        self.handle.enter_thread()
        try:
            return await self._env.call_sync(function, *arguments)
        finally:
            self.handle.leave_thread()

    def report(self, fraction: float, note: str | None) -> None:
        """Pass progress on; called from user code, sync or async, so it must not wait."""
        text = None if note is None else printable(self.secrets.text(note), PROGRESS_NOTE_LIMIT)
        self._env.report(self._execution.id, Progress(fraction, text))

    def hand_over(self, actions: tuple[str, ...]) -> None:
        """Remember what a person is to do if the run completes; written with its outcome."""
        self.handed_over = actions

    def _note(self, step: str) -> str | None:
        with self._env.store.writing() as tx:
            ended = self._stopwatch.steps
            return executions.note_step(tx, self._env.owner, self._execution.id, step, ended)


@cache
def _logger(workflow: str) -> logging.Logger:
    return logging.getLogger(f"headway.run.{workflow}")
