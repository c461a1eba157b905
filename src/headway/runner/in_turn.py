"""Many things done in as few tasks as that takes: most runs end without waiting for anything."""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# After so many seconds in one go the loop sees to others in between.
LONG_ENOUGH = 0.01
# No more tasks are begun at once: most may find nothing left to do.
MOST_AT_ONCE = 64


class InTurn(Generic[T]):
    """Has *do* done for one after another in the same task, in their order.

    What waits for something has its task to itself from then on, and others take over the rest: the
    first time one, then twice as many, and so on. So has whatever leaves a trace that the next
    would find: a context variable, or that the task was cancelled.

    >>> loop, tasks = asyncio.new_event_loop(), []
    >>> async def do(number: int) -> None: tasks.append(asyncio.current_task())
    >>> in_turn = InTurn(loop, do)
    >>> in_turn.start(range(10)); loop.run_until_complete(asyncio.sleep(0)); loop.close()
    >>> len(tasks), len(set(tasks))
    (10, 1)
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, do: Callable[[T], Coroutine[Any, Any, None]]
    ) -> None:
        self._loop = loop
        self._do = do
        self._left: deque[T] = deque()
        self._turns = 0
        self._going_on = False
        # The loop keeps no hold on what waits.
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, several: Iterable[T]) -> None:
        """Have it done for *several* more; called in the loop."""
        self._left.extend(several)
        if self._left and not self._going_on:
            self._going_on = True
            self._begin(1)

    def _begin(self, tasks: int) -> None:
        for _ in range(min(tasks, len(self._left))):
            task = self._loop.create_task(self._carry_on())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._loop.call_soon(self._look, tasks)

    def _look(self, tasks: int) -> None:
        """All that have just begun are through with what is left, or wait for something."""
        self._turns += 1
        self._going_on = bool(self._left)
        if self._going_on:
            self._begin(min(2 * tasks, MOST_AT_ONCE))

    async def _carry_on(self) -> None:
        turn, until = self._turns, self._loop.time() + LONG_ENOUGH
        task, before = asyncio.current_task(self._loop), contextvars.copy_context()
        assert task is not None
        while self._left:
            await self._do(self._left.popleft())
            if self._turns != turn or self._loop.time() > until:
                return
            if task.cancelling() or contextvars.copy_context() != before:
                return
