"""JobRunner: runs executions in the caller's own thread, one after another."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headway.config import Settings
from headway.definition.registry import Registry
from headway.definition.replacing import SandboxAddress
from headway.domain.execution import ExecutionState, Outcome
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry
from headway.runner.recording import Recording
from headway.runner.state import RunnerEnv, RunnerState
from headway.runner.threads import in_daemon_thread
from headway.runner.workflow import JOB_RUNNER
from headway.store import executions
from headway.store.engine import TRANSIENT, Store
from headway.store.executions import Progress

# How long to wait before an outcome is written once more, in seconds.
PAUSES = (0.1, 0.4, 1.6)


@dataclass(frozen=True)
class RunnerResult:
    """What one pass did: how many executions were claimed, how they ended, and why they failed."""

    claimed: int = 0
    ended: Counter[ExecutionState] = field(default_factory=Counter)
    failures: tuple[str, ...] = ()


async def _here(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


async def run_execution(env: RunnerEnv, state: RunnerState) -> RunnerState:
    """Take one execution through the JobRunner's steps."""
    done: RunnerState = await JOB_RUNNER.run(state, env, before_step=None, call_sync=_here)
    return done


class JobRunner:
    """Claims pending executions and runs them to their end.

    Its owner has no lease: beside a running service, what it runs would pass for an orphan.

    >>> JobRunner(store, registry, observer, "me", settings).run_once().claimed  # doctest: +SKIP
    3
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        observer: Observer,
        owner: str,
        settings: Settings,
        *,
        sandbox: Callable[[], SandboxAddress] | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        self._observer = observer
        self._owner = owner
        backoff, crashes = settings.retry_policy, settings.max_crashes
        self._write = Recording(store, owner, observer, backoff, max_crashes=crashes)
        self._env = RunnerEnv(
            store=store,
            registry=registry,
            owner=owner,
            cancellations=CancellationRegistry(),
            call_store=_here,
            call_sync=in_daemon_thread,
            record=self._record,
            report=self._report,
            observer=observer,
            settings=settings,
            on_queued=lambda: None,
            longest_wait=sum(PAUSES),
            sandbox=sandbox,
        )
        self._loop = asyncio.Runner()

    def run_once(self, limit: int = 100) -> RunnerResult:
        """Claim up to *limit* pending executions, best first, and run each to its end."""
        with self._store.writing() as tx:
            claimed = executions.claim_pending(
                tx, self._owner, limit, self._registry.names(), self._registry.first_steps()
            )
        outcomes = [self._run(RunnerState(execution.id, execution)) for execution in claimed]
        ended = Counter(outcome.state for outcome in outcomes if outcome)
        failures = [
            f"{execution.external_id or execution.workflow}: {outcome.failure.summary}"
            for execution, outcome in zip(claimed, outcomes, strict=True)
            if outcome and outcome.failure
        ]
        return RunnerResult(len(claimed), ended, tuple(failures))

    def run_one(self, execution_id: int) -> ExecutionState | None:
        """Claim this execution and run it; None if it was not pending any more."""
        outcome = self._run(RunnerState(execution_id))
        return outcome.state if outcome else None

    def close(self) -> None:
        """Close the event loop async steps ran in, also from a thread that runs another loop."""
        # asyncio refuses to end one event loop where another one is running.
        closing = threading.Thread(target=self._loop.close, name="headway-close-loop")
        closing.start()
        closing.join()

    def _run(self, state: RunnerState) -> Outcome | None:
        return self._loop.run(run_execution(self._env, state)).outcome

    def _report(self, execution_id: int, progress: Progress) -> None:
        with self._store.writing() as tx:
            executions.note_progress(tx, self._owner, {execution_id: progress})

    async def _record(self, execution_id: int, outcome: Outcome) -> bool:
        """What ran is not lost for a session that was ended; a database that stays away is."""
        for pause in PAUSES:
            try:
                return bool(self._write({execution_id: outcome}))
            except TRANSIENT as error:
                self._observer.loop_failed("completions", error)
                await asyncio.sleep(pause)
        return bool(self._write({execution_id: outcome}))
