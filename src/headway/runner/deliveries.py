"""Executions that another task server delivers: claimed by their ids, run once.

Everything else is as in a worker pool: the lease, the look at what is owned, the drain at the end.
"""

import asyncio
import threading
from collections.abc import Callable, Collection
from concurrent.futures import CancelledError, Future
from typing import Any

from headway.domain.execution import Execution, ExecutionState
from headway.errors import HeadwayError
from headway.runner.job_runner import run_execution
from headway.runner.outcome import failed
from headway.runner.pool import WorkerPool
from headway.runner.state import RunnerEnv, RunnerState
from headway.runner.tasks import Tasks
from headway.store import deliveries, leases, outcomes
from headway.store.deliveries import Waiting
from headway.store.transaction import Transaction

Taken = Execution | Waiting | None

CLOSED = "this executor is closed and runs nothing more; deliver the execution elsewhere, or again"


class NotLeased(HeadwayError):
    """This process has no living lease at the moment, so that it may claim nothing.

    >>> str(NotLeased("host-1-ab"))
    'host-1-ab has no living lease at the moment and may claim nothing; deliver it again'
    """

    def __init__(self, owner: str) -> None:
        super().__init__(
            f"{owner} has no living lease at the moment and may claim nothing; deliver it again"
        )


class Deliveries(WorkerPool):
    """A pool that claims nothing of its own accord: whoever delivers an execution waits for it.

    >>> pool = Deliveries(store, registry, settings, observer, "me", takes=names)  # doctest: +SKIP
    >>> pool.start(); pool.run(7)  # doctest: +SKIP
    <ExecutionState.COMPLETED: 'completed'>
    """

    def __init__(self, *arguments: Any, takes: Collection[str], **options: Any) -> None:
        super().__init__(*arguments, leased=True, **options)
        self._takes = takes
        self._tasks = Tasks(self._loop, self._look_if_more)
        self._waiting: set[Future[ExecutionState | None]] = set()
        self._ending = threading.Lock()
        self._suspects = asyncio.Lock()
        self._room = asyncio.Event()

    def run(self, execution_id: int) -> ExecutionState | None:
        """Claim this execution and run it to its end; None if it was not waiting any more.

        May be called from several threads at once, but not from a step.
        """
        waiting = self._handed_to_the_loop(execution_id)
        try:
            return waiting.result()
        except CancelledError:
            return None  # this process stops, and has handed it back
        finally:
            self._waiting.discard(waiting)

    def _handed_to_the_loop(self, execution_id: int) -> Future[ExecutionState | None]:
        delivery = self._deliver(execution_id)
        with self._ending:
            try:
                waiting = asyncio.run_coroutine_threadsafe(delivery, self._loop)
            except RuntimeError as error:  # the loop has ended
                delivery.close()
                raise HeadwayError(CLOSED) from error
            self._waiting.add(waiting)
        return waiting

    def request_stop(self, grace: float | None = None) -> None:
        """Take nothing more, not even what waits for others to end."""
        super().request_stop(grace)
        self._tell_loop(self._room.set)

    def stop(self) -> None:
        """Stop like any pool; who delivered too late for the loop to notice waits no longer."""
        super().stop()
        with self._ending:
            for waiting in list(self._waiting):
                waiting.cancel()

    async def _claim_and_start(self, env: RunnerEnv) -> None:
        """Nothing: what there is to run is delivered."""

    async def _deliver(self, execution_id: int) -> ExecutionState | None:
        if self._stopping:
            raise HeadwayError(CLOSED)
        return await self._tasks.start(self._claim_and_run(self._env, execution_id))

    async def _claim_and_run(self, env: RunnerEnv, execution_id: int) -> ExecutionState | None:
        found = await self._try_to_claim(env, execution_id)
        if isinstance(found, Waiting):
            env, found = await self._claim_suspect(execution_id, found.crashes)
        if not isinstance(found, Execution):
            return None
        started = found.state is ExecutionState.IN_PROGRESS
        return await self._run_to_its_end(env, found) if started else found.state

    async def _run_to_its_end(self, env: RunnerEnv, execution: Execution) -> ExecutionState | None:
        """Run it and wait until that is recorded; None if it could not be."""
        try:
            done = await run_execution(env, RunnerState(execution.id, execution))
            return done.outcome.state if done.outcome and done.recorded else None
        except Exception as error:
            self._observer.loop_failed("worker", error)
            self._unwritten[execution.id] = failed("RunWorkflow", error)
            return None
        finally:
            self._running.pop(execution.id, None)

    def _whom_to_tell(self) -> None:
        """Nobody: whoever delivered it waits until its end is recorded."""

    def _going_on(self) -> int:
        return len(self._tasks)

    async def _claim_suspect(self, execution_id: int, crashes: int) -> tuple[RunnerEnv, Taken]:
        """Wait until it may share this process with those that run, and claim it then.

        One after another, so that of two that must not meet neither overlooks the other. It may
        have been run elsewhere by then, and this process may have got another name.
        """
        async with self._suspects:
            while not self._suspicion.admits(crashes, self._crashes()):
                self._room.clear()
                await self._room.wait()
                if self._stopping:
                    raise HeadwayError(CLOSED)
            return self._env, await self._try_to_claim(self._env, execution_id, crashes)

    async def _try_to_claim(self, env: RunnerEnv, execution_id: int, crashes: int = 0) -> Taken:
        found: Taken = await self._claim(self._take, env.owner, execution_id, crashes)
        if isinstance(found, Execution) and found.state is ExecutionState.IN_PROGRESS:
            self._running[execution_id] = found
        return found

    async def _claim(self, claim: Callable[..., Any], *arguments: Any) -> Any:
        """A look at what is owned must not take a claim that is on its way for a lost one."""
        key = self._slots.announce()
        try:
            return await self._call_store(claim, *arguments)
        finally:
            self._slots.fill(key)

    def _crashes(self) -> list[int]:
        return [one.crashes for one in self._running.values()]

    def _look_if_more(self) -> None:
        super()._look_if_more()
        self._room.set()

    def _take(self, owner: str, execution_id: int, crashes: int) -> Taken:
        """Claim it, or send it back if this process does not run its workflow.

        One that has taken more workers along than *crashes* is left waiting.
        """
        first_steps = self._registry.first_steps()
        with self._store.briefly() as tx:
            if not leases.hold(tx, owner):
                raise NotLeased(owner)
            claimed = deliveries.claim_delivered(
                tx, owner, execution_id, self._takes, first_steps, crashes
            )
            if claimed is not None:
                return claimed
            waiting = deliveries.find_waiting(tx, execution_id)
            if waiting is None or waiting.workflow in self._takes:
                return waiting
            known = waiting.workflow in self._registry.names()
            missing = f"does not {'run' if known else 'know'} the workflow {waiting.workflow!r}"
            returned = self._take_back(tx, execution_id, f"{owner} {missing}")
        for one in returned:
            self._observer.emit(f"execution.{one.state}", **one.told())
        return returned[0] if returned else None

    def _take_back(self, tx: Transaction, execution_id: int, reason: str) -> list[Execution]:
        """Whoever runs it may still come, as for all that no living server knows."""
        settings = self._settings
        return outcomes.take_back(
            tx,
            [execution_id],
            settings.max_dispatch_attempts,
            reason,
            settings.retry_policy,
            patience=settings.unknown_workflow_timeout,
        )
