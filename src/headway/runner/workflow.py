"""The JobRunner's four steps: LoadExecution → ValidateState → RunWorkflow → RecordOutcome."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from headway.definition.isolated_steps import pickled
from headway.definition.registry import RegisteredWorkflow
from headway.domain.execution import Execution, ExecutionState, Outcome
from headway.domain.isolation import Isolation
from headway.run import Run
from headway.runner.activation import Activations
from headway.runner.attempt import attempt, ended_by
from headway.runner.isolation.messages import Job
from headway.runner.isolation.supervision import Limits, Services, run_isolated
from headway.runner.only_step import only_step, run_only_step
from headway.runner.outcome import failed
from headway.runner.patience import Patience
from headway.runner.secrets import RunSecrets
from headway.runner.state import RunnerEnv, RunnerState
from headway.runner.step_watch import StepWatch
from headway.steps import Step
from headway.store import executions
from headway.store.engine import TRANSIENT
from headway.workflow import FAILURES, Workflow


async def load_execution(state: RunnerState, env: RunnerEnv) -> RunnerState:
    """Claim the execution unless the pool already did; the loser of a race goes no further."""
    if state.execution is None:
        claimed = await env.call_store(_claim, env, state.execution_id)
        state = state._replace(execution=claimed)
    if state.execution is not None and state.execution.crashes:
        return await _begin_on_record(state.execution, env)
    return state


async def _begin_on_record(execution: Execution, env: RunnerEnv) -> RunnerState:
    """Record that a run begins that has lost a worker before, ahead of all code of the user's.

    Should this worker be lost too, the run is charged with it; while it waits, it is not. One that
    cannot be recorded, or is no longer ours, is handed back.
    """
    step = env.registry.first_steps().get(execution.workflow, execution.workflow)
    # One after another: a run that waits for the body of another has not begun.
    async with env.beginning:
        try:
            flag = await env.call_store(_note_begin, env, execution.id, step)
        except TRANSIENT:
            flag = None
    if flag is None:
        outcome = Outcome(ExecutionState.HANDED_BACK, steps=())
        return RunnerState(execution.id, execution, outcome=outcome)
    if not flag:  # else the step itself looks why it is to stop
        execution = execution._replace(running_step=step)
    return RunnerState(execution.id, execution)


def _note_begin(env: RunnerEnv, execution_id: int, step: str) -> str | None:
    with env.store.writing() as tx:
        return executions.note_step(tx, env.owner, execution_id, step)


def _claim(env: RunnerEnv, execution_id: int) -> Execution | None:
    with env.store.writing() as tx:
        return executions.claim_one(tx, env.owner, execution_id, env.registry.first_steps())


async def validate_state(state: RunnerState, env: RunnerEnv) -> RunnerState:
    """Find the workflow by its registered name and read the input as its declared type."""
    return _validated(state, env)


def _validated(state: RunnerState, env: RunnerEnv) -> RunnerState:
    execution = state.execution
    if execution is None or state.outcome is not None:
        return state
    registered = None
    try:
        registered = env.registry.find(execution.workflow)
        if registered.isolation is not None:  # its process reads the input, at its own risk
            return state._replace(registered=registered)
        value = registered.input_type.decode(execution.input, _subject(execution))
    except BaseException as error:  # an input's validators are user code and may raise anything
        return state._replace(outcome=_not_valid(registered, execution, error))
    # Written out, as below: for every run, and naming the field that changes takes thrice as long.
    return RunnerState(state.execution_id, execution, registered, value)


def _not_valid(
    registered: RegisteredWorkflow | None, execution: Execution, error: BaseException
) -> Outcome:
    redact = RunSecrets(registered.input_type, execution.input).text if registered else str
    return failed("ValidateState", error, redact)._replace(steps=())


def _subject(execution: Execution) -> str:
    return execution.external_id or execution.workflow


async def run_workflow(state: RunnerState, env: RunnerEnv) -> RunnerState:
    """Run the user's steps; whatever they do becomes an outcome, never an exception."""
    execution, registered = state.execution, state.registered
    if execution is None or registered is None:
        return state
    if (step := _short_way(execution, registered, env)) is not None:
        outcome = await run_only_step(
            step,
            state.value,
            execution,
            env.cancellations,
            env.loop,
            input_type=registered.input_type,
            stop_when_cut_off=registered.stop_when_cut_off,
        )
        return RunnerState(execution.id, execution, registered, state.value, outcome)
    handle = env.cancellations.register(
        execution.id, stop_when_cut_off=registered.stop_when_cut_off
    )
    secrets = RunSecrets(registered.input_type, execution.input, state.value)
    watch = StepWatch(env, execution, handle, secrets)
    if watch.is_told:
        _tell_start(env, execution)
    try:
        if registered.isolation is None:
            outcome = await _run_here(state, env, watch)
        else:
            outcome = await _run_elsewhere(state, env, watch, registered.isolation)
    except FAILURES as error:
        # Without an outcome the run would be handed back, uncharged, and begin again for ever.
        outcome = ended_by(error, watch.step, handle, secrets)
    finally:
        env.cancellations.unregister(execution.id)
    if outcome.steps is None:
        outcome = outcome._replace(steps=watch.steps_that_ran())
    if watch.is_told:
        _tell_end(env, execution, outcome)
    return RunnerState(execution.id, execution, registered, state.value, outcome)


def _short_way(execution: Execution, registered: RegisteredWorkflow, env: RunnerEnv) -> Step | None:
    """The only step of this run, if there is nothing else to do about it."""
    if registered.isolation or registered.keep_output or env.observer.wants("execution.step"):
        return None
    return only_step(registered.workflow, execution)


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
        _activate_many=partial(_activate_here, env, execution, watch),
        _hand_over=watch.hand_over,
    )


async def _run_elsewhere(
    state: RunnerState, env: RunnerEnv, watch: StepWatch, isolation: Isolation
) -> Outcome:
    execution, registered = state.execution, state.registered
    assert execution is not None and registered is not None
    patience = Patience(watch.handle, env.observer, longest=env.longest_wait)
    timeout = await patience.wait_for(lambda: env.call_store(_timeout, env, execution.id))
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
        sandbox=env.sandbox and env.sandbox(),
    )

    async def activate_many(wanted: tuple[tuple[str, Any], ...], max_attempts: int) -> int:
        call = _activations(env, execution, watch).call(wanted, max_attempts)
        taken: int = await patience.wait_for(lambda: env.call_store(call.attempt))
        env.on_queued()
        return taken

    limits = Limits(timeout.total_seconds(), env.settings.cancel_grace.total_seconds())
    services = Services(watch.before_step, watch.report, activate_many, watch.secrets.text)
    return watch.secrets.outcome(await run_isolated(job, watch.handle, limits, services))


def _timeout(env: RunnerEnv, execution_id: int) -> timedelta:
    with env.store.reading() as tx:
        return executions.timeout_of(tx, execution_id) or env.settings.default_job_timeout


def _activations(env: RunnerEnv, execution: Execution, watch: StepWatch) -> Activations:
    boost = env.settings.dependent_priority_boost
    return Activations(env.store, env.registry, env.owner, execution, boost, watch.secrets)


def _activate_here(
    env: RunnerEnv,
    execution: Execution,
    watch: StepWatch,
    wanted: Iterable[tuple[str, Any]],
    max_attempts: int,
) -> int:
    """Activate in the thread of the step; in an async step, the event loop waits with it."""
    call = _activations(env, execution, watch).call(wanted, max_attempts)
    gives_up = env.is_stopping if _in_event_loop() else lambda: False
    taken = Patience(watch.handle, env.observer, gives_up, env.longest_wait).call(call.attempt)
    env.on_queued()
    return taken


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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


async def run_claimed(execution: Execution, env: RunnerEnv) -> RunnerState:
    """The same steps for what has been claimed, one in the other: for every run of a pool, and to
    go through the engine takes as long again as a short run."""
    state = RunnerState(execution.id, execution)
    if execution.crashes:
        state = await _begin_on_record(execution, env)
    state = _validated(state, env)
    return await record_outcome(await run_workflow(state, env), env)
