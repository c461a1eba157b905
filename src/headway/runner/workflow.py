"""The JobRunner's four steps: LoadExecution → ValidateState → RunWorkflow → RecordOutcome."""

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any

from headway.definition.registry import RegisteredWorkflow
from headway.domain.execution import Execution, Outcome
from headway.domain.isolation import Isolation
from headway.run import Run
from headway.runner.activation import Activations
from headway.runner.attempt import attempt
from headway.runner.isolation.messages import Job
from headway.runner.isolation.supervision import Limits, Services, pickled, run_isolated
from headway.runner.only_step import only_step, run_only_step
from headway.runner.outcome import failed
from headway.runner.state import RunnerEnv, RunnerState
from headway.runner.step_watch import StepWatch
from headway.steps import Step
from headway.store import executions
from headway.workflow import Workflow


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
    return _validated(state, env)


def _validated(state: RunnerState, env: RunnerEnv) -> RunnerState:
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
    if (step := _short_way(execution, registered, env)) is not None:
        outcome = await run_only_step(
            step,
            state.value,
            execution,
            env.cancellations,
            env.loop,
            stop_when_cut_off=registered.stop_when_cut_off,
        )
        return RunnerState(execution.id, execution, registered, state.value, outcome)
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


async def run_claimed(execution: Execution, env: RunnerEnv) -> RunnerState:
    """The same steps for what has been claimed, one in the other: for every run of a pool, and to
    go through the engine takes as long again as a short run."""
    state = _validated(RunnerState(execution.id, execution), env)
    return await record_outcome(await run_workflow(state, env), env)
