"""JobRunner: runs executions in the caller's own thread, one after another."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.definition.registry import Registry
from headway.domain.execution import ExecutionState, Outcome
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry
from headway.runner.workflow import JOB_RUNNER, RunnerEnv, RunnerState
from headway.store import executions, outcomes
from headway.store.engine import Store


@dataclass(frozen=True)
class RunnerResult:
    """What one pass did: how many executions were claimed, and how they ended."""

    claimed: int = 0
    ended: Counter[ExecutionState] = field(default_factory=Counter)


async def _here(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


async def _go_on(step: str) -> None:
    """The runner's own steps are not watched."""


def write_outcomes(
    store: Store, owner: str, observer: Observer, ended: Mapping[int, Outcome]
) -> set[int]:
    """Record how *owner*'s executions ended, all in one transaction; returns those recorded."""
    with store.writing() as tx:
        recorded = outcomes.finish(tx, owner, ended)
    for one in recorded:
        observer.emit(
            f"execution.{one.state}",
            execution_id=one.id,
            external_id=one.external_id,
            workflow=one.workflow,
            failure=one.failure and one.failure.summary,
        )
    return {one.id for one in recorded}


async def run_execution(env: RunnerEnv, state: RunnerState) -> RunnerState:
    """Take one execution through the JobRunner's steps."""
    done: RunnerState = await JOB_RUNNER.run(state, env, before_step=_go_on, call_sync=_here)
    return done


class JobRunner:
    """Claims pending executions and runs them to their end.

    >>> JobRunner(store, registry, observer, "me").run_once().claimed  # doctest: +SKIP
    3
    """

    def __init__(self, store: Store, registry: Registry, observer: Observer, owner: str) -> None:
        self._store = store
        self._registry = registry
        self._observer = observer
        self._owner = owner
        self._env = RunnerEnv(
            store=store,
            registry=registry,
            owner=owner,
            cancellations=CancellationRegistry(),
            call_store=_here,
            call_sync=_here,
            record=self._record,
        )
        self._loop = asyncio.Runner()

    def run_once(self, limit: int = 100) -> RunnerResult:
        """Claim up to *limit* pending executions, best first, and run each to its end."""
        with self._store.writing() as tx:
            claimed = executions.claim_pending(tx, self._owner, limit, self._registry.names())
        ended: Counter[ExecutionState] = Counter()
        for execution in claimed:
            ended.update(self._run(RunnerState(execution.id, execution)))
        return RunnerResult(len(claimed), ended)

    def run_one(self, execution_id: int) -> ExecutionState | None:
        """Claim this execution and run it; None if it was not pending any more."""
        return next(iter(self._run(RunnerState(execution_id))), None)

    def close(self) -> None:
        """Close the event loop async steps ran in."""
        self._loop.close()

    def _run(self, state: RunnerState) -> list[ExecutionState]:
        done = self._loop.run(run_execution(self._env, state))
        return [done.outcome.state] if done.outcome else []

    async def _record(self, execution_id: int, outcome: Outcome) -> bool:
        return bool(
            write_outcomes(self._store, self._owner, self._observer, {execution_id: outcome})
        )
