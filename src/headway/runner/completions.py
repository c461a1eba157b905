"""Completions in batches: whatever ended while one write was under way goes into the next.

There is no timer: a lone completion is written at once.
"""

import asyncio
from collections.abc import Callable, Mapping

from headway.domain.execution import Outcome
from headway.observe import Observer
from headway.store.engine import TRANSIENT
from headway.workflow import CallSync

Write = Callable[[Mapping[int, Outcome]], set[int]]

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0


class Completions:
    """Collects outcomes on the pool's event loop and writes them through *write*."""

    def __init__(self, write: Write, call_store: CallSync, observer: Observer) -> None:
        self._write = write
        self._call_store = call_store
        self._observer = observer
        self._waiting: dict[int, tuple[Outcome, asyncio.Future[bool]]] = {}
        self._flushing: asyncio.Task[None] | None = None

    async def record(self, execution_id: int, outcome: Outcome) -> bool:
        """Write *outcome*; True if the execution was still ours."""
        told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[execution_id] = (outcome, told)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        return await told

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            outcomes = {key: outcome for key, (outcome, _) in batch.items()}
            recorded = await self._write_patiently(outcomes)
            for key, (_, told) in batch.items():
                if not told.done():
                    told.set_result(key in recorded)

    async def _write_patiently(self, outcomes: Mapping[int, Outcome]) -> set[int]:
        """A database that is away ends no job: what ran is written when it is back."""
        pause = FIRST_PAUSE
        while True:
            try:
                return set(await self._call_store(self._write, outcomes))
            except TRANSIENT as error:
                self._observer.emit("loop.failed", loop="completions", error=repr(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
