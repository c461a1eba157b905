"""The JobRunner's four steps: LoadExecution → ValidateState → RunWorkflow → RecordOutcome."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Any, NamedTuple

from headway.config import Settings
from headway.definition.registry import RegisteredWorkflow, Registry
from headway.domain.execution import Execution, Outcome, StepRun
from headway.domain.isolation import Isolation
from headway.domain.text import printable
from headway.errors import JobCancelled
from headway.observe import Observer
from headway.run import Run
from headway.runner.activation import Activations
from headway.runner.attempt import attempt
from headway.runner.cancellation import Cancellation, CancellationRegistry, StopReason
from headway.runner.isolation.messages import Job
from headway.runner.isolation.supervision import Limits, Services, pickled, run_isolated
from headway.runner.outcome import failed
from headway.runner.ownership import stop_reason
from headway.runner.stopwatch import Stopwatch
from headway.store import executions
from headway.store.engine import TRANSIENT, Store
from headway.store.executions import Progress
from headway.workflow import CallSync, Workflow

PROGRESS_NOTE_LIMIT = 500


@dataclass(frozen=True)
class RunnerEnv:
    """What the steps may use; how store verbs, sync steps and outcomes are carried out differs
    between a worker pool and a run in the caller's own thread."""

    store: Store
    registry: Registry
    owner: str
    cancellations: CancellationRegistry
    call_store: CallSync
    call_sync: CallSync
    record: Callable[[int, Outcome], Awaitable[bool | None]]
    report: Callable[[int, Progress], None]
    observer: Observer
    settings: Settings
    on_queued: Callable[[], None]
    loop: asyncio.AbstractEventLoop | None = None


class RunnerState(NamedTuple):
    """One execution on its way from claimed to recorded: None if that is left to others."""

    execution_id: int
    execution: Execution | None = None
    registered: RegisteredWorkflow | None = None
    value: Any = None
    outcome: Outcome | None = None
    recorded: bool | None = False


async def load_execution(state: RunnerState, env: RunnerEnv) -> RunnerState:
    """Claim the execution unless the pool already did; the loser of a race goes no further."""
    if state.execution is not None:
        return state
    claimed = await env.call_store(_claim, env, state.execution_id)
    return state._replace(execution=claimed)


def _claim(env: RunnerEnv, execution_id: int) -> Execution | None:
    with env.store.writing() as tx:
        return executions.claim_one(tx, env.owner, execution_id, env.registry.first_steps())


async def validate_state(state: RunnerState, env: RunnerEnv) -> RunnerState:
    """Find the workflow by its registered name and read the input as its declared type."""
    execution = state.execution
    if execution is None:
        return state
    try:
        registered = env.registry.find(execution.workflow)
        if registered.isolation is not None:  # its process reads the input, at its own risk
            return state._replace(registered=registered)
        value = registered.input_type.decode(execution.input, _subject(execution))
    except BaseException as error:  # an input's validators are user code and may raise anything
        return state._replace(outcome=failed("ValidateState", error)._replace(steps=()))
    # Written out, as below: for every run, and naming the field that changes takes thrice as long.
    return RunnerState(state.execution_id, execution, registered, value)


def _subject(execution: Execution) -> str:
    return execution.external_id or execution.workflow


async def run_workflow(state: RunnerState, env: RunnerEnv) -> RunnerState:
    """Run the user's steps; whatever they do becomes an outcome, never an exception."""
    execution, registered = state.execution, state.registered
    if execution is None or registered is None:
        return state
    handle = env.cancellations.register(
        execution.id, stop_when_cut_off=registered.stop_when_cut_off
    )
    watch = StepWatch(env, execution, handle)
    if watch.is_told:
        _tell_start(env, execution)
    try:
        if registered.isolation is None:
            outcome = await _run_here(state, env, watch)
        else:
            outcome = await _run_elsewhere(state, env, watch, registered.isolation)
    finally:
        env.cancellations.unregister(execution.id)
    if outcome.steps is None:
        outcome = outcome._replace(steps=watch.steps_that_ran())
    if watch.is_told:
        _tell_end(env, execution, outcome)
    return RunnerState(execution.id, execution, registered, state.value, outcome)


def _tell_start(env: RunnerEnv, execution: Execution) -> None:
    env.observer.emit(
        "execution.started",
        **execution.told(),
        entry_id=execution.entry_id,
        source=execution.source,
        attempt=execution.attempt,
        queued_at=execution.queued_at,
        dispatched_at=execution.dispatched_at,
        started_at=execution.started_at,
    )


def _tell_end(env: RunnerEnv, execution: Execution, outcome: Outcome) -> None:
    env.observer.emit(
        "execution.ran",
        execution_id=execution.id,
        state=outcome.state,
        failure=outcome.failure and outcome.failure.summary,
    )


class StepWatch:
    """What happens around each step: it is recorded, and cancellation is looked for."""

    def __init__(self, env: RunnerEnv, execution: Execution, handle: Cancellation) -> None:
        self.step = execution.workflow
        self.handle = handle
        self.logger = _logger(execution.workflow)
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
        if self.handle.reason is None and not self._was_claimed_with(step):
            await self._look_into_the_store(step)
        if self.handle.reason is not None:
            raise JobCancelled(f"stopped before step {step!r}: {self.handle.reason}")
        self._stopwatch.begin(step)
        if self.is_told:
            self._env.observer.emit("execution.step", execution_id=self._execution.id, step=step)

    def _was_claimed_with(self, step: str) -> bool:
        """The claim has put the first step on record and found no cancellation."""
        claimed = self._execution
        return claimed.running_step == step and not claimed.cancel_requested

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
        text = None if note is None else printable(note, PROGRESS_NOTE_LIMIT)
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


async def _run_here(state: RunnerState, env: RunnerEnv, watch: StepWatch) -> Outcome:
    execution, registered = state.execution, state.registered
    assert execution is not None and registered is not None
    run = _run_for(env, execution, watch) if registered.workflow.takes_context else None
    return await attempt(
        registered.workflow, state.value, run, watch, keep_output=registered.keep_output
    )


def _run_for(env: RunnerEnv, execution: Execution, watch: StepWatch) -> Run:
    return Run(
        execution_id=execution.id,
        workflow=execution.workflow,
        manifest=execution.external_id,
        attempt=execution.attempt,
        scheduled_for=execution.scheduled_for,
        idempotency_key=execution.idempotency_key,
        logger=watch.logger,
        _report=watch.report,
        _is_cancelled=lambda: watch.handle.requested,
        _activate_many=partial(_activate_many, env, execution),
        _hand_over=watch.hand_over,
    )


async def _run_elsewhere(
    state: RunnerState, env: RunnerEnv, watch: StepWatch, isolation: Isolation
) -> Outcome:
    execution, registered = state.execution, state.registered
    assert execution is not None and registered is not None
    timeout = await env.call_store(_timeout, env, execution.id)
    job = Job(
        code=pickled(registered.workflow),
        workflow=execution.workflow,
        input=execution.input,
        subject=_subject(execution),
        execution_id=execution.id,
        manifest=execution.external_id,
        attempt=execution.attempt,
        scheduled_for=execution.scheduled_for,
        idempotency_key=execution.idempotency_key,
        max_memory=isolation.max_memory,
        keep_output=registered.keep_output,
    )

    async def activate_many(wanted: tuple[tuple[str, Any], ...], max_attempts: int) -> int:
        return int(await env.call_store(_activate_many, env, execution, wanted, max_attempts))

    limits = Limits(timeout.total_seconds(), env.settings.cancel_grace.total_seconds())
    services = Services(watch.before_step, watch.report, activate_many)
    return await run_isolated(job, watch.handle, limits, services)


def _timeout(env: RunnerEnv, execution_id: int) -> timedelta:
    with env.store.reading() as tx:
        return executions.timeout_of(tx, execution_id) or env.settings.default_job_timeout


def _activate_many(
    env: RunnerEnv,
    execution: Execution,
    activations: Iterable[tuple[str, Any]],
    max_attempts: int,
) -> int:
    boost = env.settings.dependent_priority_boost
    activating = Activations(env.store, env.registry, env.owner, execution, boost)
    taken = activating.activate_many(activations, max_attempts)
    env.on_queued()
    return taken


async def record_outcome(state: RunnerState, env: RunnerEnv) -> RunnerState:
    """Write how it ended, if it is still ours to write."""
    if state.execution is None or state.outcome is None:
        return state
    recorded = await env.record(state.execution.id, state.outcome)
    if recorded is False:
        env.observer.emit("execution.refused", **state.execution.told())
    return RunnerState(*state[:5], recorded)


JOB_RUNNER = Workflow(
    "job-runner",
    (load_execution, validate_state, run_workflow, record_outcome),
    RunnerEnv,
)
