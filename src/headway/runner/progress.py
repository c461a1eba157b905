"""Progress reports, written in the background: a job that reports often waits for nobody."""

import asyncio
from collections.abc import Callable, Mapping

from headway.store.engine import TRANSIENT
from headway.store.executions import Progress
from headway.workflow import CallSync


class ProgressWriter:
    """Keeps the newest report of each run and writes whatever has come in since the last write."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        write: Callable[[Mapping[int, Progress]], None],
        call_store: CallSync,
    ) -> None:
        self._loop = loop
        self._write = write
        self._call_store = call_store
        self._reported: dict[int, Progress] = {}
        self._writing: asyncio.Task[None] | None = None

    def report(self, execution_id: int, progress: Progress) -> None:
        """Have *progress* written soon; called from any thread."""
        self._loop.call_soon_threadsafe(self._take, execution_id, progress)

    def _take(self, execution_id: int, progress: Progress) -> None:
        self._reported[execution_id] = progress
        if self._writing is None or self._writing.done():
            self._writing = self._loop.create_task(self._write_all())

    async def _write_all(self) -> None:
        while self._reported:
            reported, self._reported = self._reported, {}
            try:
                await self._call_store(self._write, reported)
            except TRANSIENT:
                return  # the next report will do
