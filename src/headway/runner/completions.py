"""Completions in batches: whatever ended while one write was under way goes into the next.

There is no timer: a lone completion is written at once.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from headway.domain.execution import Outcome
from headway.observe import Observer
from headway.runner.outcome import failed
from headway.store.engine import TRANSIENT
from headway.workflow import CallSync

Write = Callable[[Mapping[int, Outcome]], set[int]]
OnWritten = Callable[[Collection[int], set[int]], None]
"""Told of the executions of one write, and which of them are on record: the others were no longer
ours."""

OnUnwritten = Callable[[int, Outcome], None]
"""Called with an execution whose end the database refuses, and the failure it refuses as well."""

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 4.0


class Completions:
    """Collects outcomes on the pool's event loop and writes them through *write*."""

    def __init__(
        self,
        write: Write,
        call_store: CallSync,
        observer: Observer,
        on_written: OnWritten | None = None,
        on_unwritten: OnUnwritten = lambda execution_id, outcome: None,
    ) -> None:
        self._write = write
        self._call_store = call_store
        self._observer = observer
        self._on_written = on_written
        self._on_unwritten = on_unwritten
        self._waiting: dict[int, Outcome] = {}
        self._answers: dict[int, asyncio.Future[bool]] = {}
        self._flushing: asyncio.Task[None] | None = None

    async def record(self, execution_id: int, outcome: Outcome) -> bool:
        """Write *outcome*; True if the execution was still ours."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._answers[execution_id] = answer
        self.hand_in(execution_id, outcome)
        return await answer

    def hand_in(self, execution_id: int, outcome: Outcome) -> None:
        """Have *outcome* written without waiting for that."""
        self._waiting[execution_id] = outcome
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            recorded = await self._write_all(batch)
            if self._on_written is not None:
                self._on_written(batch.keys(), recorded)
            for key in self._answers.keys() & batch.keys():
                answer = self._answers.pop(key)
                if not answer.done():
                    answer.set_result(key in recorded)

    async def _write_all(self, outcomes: Mapping[int, Outcome]) -> set[int]:
        """Halve a batch the database refuses, until what is wrong with it stands alone."""
        try:
            return await self._write_patiently(outcomes)
        except Exception as error:
            self._observer.loop_failed("completions", error)
            if len(outcomes) == 1:
                return await self._write_refused(next(iter(outcomes)), error)
        ids = sorted(outcomes)
        halves = (ids[: len(ids) // 2], ids[len(ids) // 2 :])
        written = [await self._write_all({key: outcomes[key] for key in half}) for half in halves]
        return set().union(*written)

    async def _write_refused(self, execution_id: int, error: Exception) -> set[int]:
        """An outcome that cannot be written becomes a failure that says so."""
        outcome = failed("RecordOutcome", error)
        try:
            return await self._write_patiently({execution_id: outcome})
        except Exception as again:
            self._observer.loop_failed("completions", again)
            self._on_unwritten(execution_id, outcome)
            return set()

    async def _write_patiently(self, outcomes: Mapping[int, Outcome]) -> set[int]:
        """A database that is away ends no job: what ran is written when it is back."""
        pause = FIRST_PAUSE
        while True:
            try:
                return set(await self._call_store(self._write, outcomes))
            except TRANSIENT as error:
                self._observer.loop_failed("completions", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
