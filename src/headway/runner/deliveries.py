"""Executions that another task server delivers: claimed by their ids, run once.

Everything else is as in a worker pool: the lease, the look at what is owned, the drain at the end.
"""

import asyncio
import threading
from concurrent.futures import CancelledError, Future
from typing import Any

from headway.domain.execution import Execution, ExecutionState
from headway.errors import HeadwayError
from headway.runner.pool import WorkerPool
from headway.runner.workflow import RunnerEnv
from headway.store import deliveries, leases, outcomes

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

    >>> pool = Deliveries(store, registry, settings, observer, "me")  # doctest: +SKIP
    >>> pool.start(); pool.run(7)                                     # doctest: +SKIP
    <ExecutionState.COMPLETED: 'completed'>
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, leased=True, **options)
        self._waiting: set[Future[ExecutionState | None]] = set()
        self._ending = threading.Lock()

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
        return await self._track(self._claim_and_run(self._env, execution_id))

    async def _claim_and_run(self, env: RunnerEnv, execution_id: int) -> ExecutionState | None:
        found: Execution | None = await self._claim(self._take, env.owner, execution_id)
        if found is None or found.state is not ExecutionState.IN_PROGRESS:
            return found.state if found else None
        self._running[execution_id] = found
        return await self._run(env, found)

    def _take(self, owner: str, execution_id: int) -> Execution | None:
        """Claim it, or send it back if this process does not know its workflow."""
        registry = self._registry
        with self._store.briefly() as tx:
            if not leases.hold(tx, owner):
                raise NotLeased(owner)
            claimed = deliveries.claim_delivered(
                tx, owner, execution_id, registry.names(), registry.first_steps()
            )
            if claimed is not None:
                return claimed
            workflow = deliveries.workflow_of_waiting(tx, execution_id)
            if workflow is None or workflow in registry.names():
                return None
            reason = f"{owner} does not know the workflow {workflow!r}"
            attempts, backoff = self._settings.max_dispatch_attempts, self._settings.retry_policy
            returned = outcomes.take_back(tx, [execution_id], attempts, reason, backoff)
        for one in returned:
            self._observer.emit(f"execution.{one.state}", **one.told())
        return returned[0] if returned else None
