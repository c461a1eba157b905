"""What goes on in a pool's event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Ended = Callable[[asyncio.Task[Any]], None]


class Tasks:
    """Everything a pool that stops has to wait for; *on_end* is told of each end.

    >>> Tasks(loop, print).start(work())  # doctest: +SKIP
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        self._loop = loop
        self._on_end = on_end
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], ended: Ended | None = None) -> asyncio.Task[T]:
        """Have *work* done; whoever is told that it has *ended* calls :meth:`end` with it."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(ended or self.end)
        return task

    def end(self, task: asyncio.Task[Any]) -> None:
        """Wait for it no longer."""
        self._tasks.discard(task)
        self._on_end()

    def __len__(self) -> int:
        """How many go on."""
        return len(self._tasks)


class Once:
    """Calls *tell* once for all who call it within one turn of the loop.

    >>> loop, told = asyncio.new_event_loop(), []
    >>> once = Once(loop, lambda: told.append(True))
    >>> once(); once(); loop.run_until_complete(asyncio.sleep(0)); loop.close()
    >>> told
    [True]
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
        self._loop = loop
        self._tell = tell
        self._due = False

    def __call__(self) -> None:
        """Have it told soon."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._go)

    def _go(self) -> None:
        self._due = False
        self._tell()
