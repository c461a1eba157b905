"""Between the loop and threads: sync steps in threads that never keep a process from ending."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any


async def in_daemon_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call *function* in a new daemon thread and await its result.

    A pool's threads are joined when the interpreter exits, so that one step that hangs would
    keep a worker from ever stopping; a daemon thread does not.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def call() -> None:
        try:
            value = context.run(function, *arguments)
        except GeneratorExit as error:
            # Thrown into the coroutine that waits, it would close it without a word.
            replaced = RuntimeError("the step raised GeneratorExit")
            replaced.__cause__ = error
            _tell(loop, result.set_exception, result, replaced)
        except BaseException as error:
            _tell(loop, result.set_exception, result, error)
        else:
            _tell(loop, result.set_result, result, value)

    threading.Thread(target=call, name="headway-step", daemon=True).start()
    return await result


def _tell(
    loop: asyncio.AbstractEventLoop,
    tell: Callable[[Any], None],
    result: asyncio.Future[Any],
    value: Any,
) -> None:
    def deliver() -> None:
        if not result.done():
            tell(value)

    try:
        loop.call_soon_threadsafe(deliver)
    except RuntimeError:
        # The worker has stopped in the meantime and handed this run back: nobody listens.
        return


async def happens(event: asyncio.Event, *, within: float) -> bool:
    """Wait for *event*, but no longer than so many seconds; whether it came."""
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False


async def until_idle(
    awaited: Callable[[], int], woken: asyncio.Event, grace: Callable[[], float]
) -> None:
    """Until nothing is *awaited* any more, or the *grace* is over.

    It is asked again after each wake-up: a second signal may shorten it.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while awaited() and (left := began + grace() - loop.time()) > 0:
        woken.clear()
        await happens(woken, within=left)


async def abandon_the_rest(patience: float) -> int:
    """End what still waits: for threads that do not listen, for a database that is away.

    Twice, because a run that is cancelled goes on to record that. Returns how many go on even then.
    """
    left: set[asyncio.Task[Any]] = set()
    for _ in range(2):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            _, left = await asyncio.wait(left, timeout=patience)
    return len(left)
