"""Calling a builder for so long and no longer, whatever it does."""

import asyncio
import inspect
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from headway.errors import HeadwayError


class BudgetExhausted(HeadwayError):
    """The builder took longer than its workorder allows."""


def within(
    budget: float, build: Callable[[], Any], pause: float, meanwhile: Callable[[], None]
) -> Any:
    """What *build* returns, sync or async, if it does so in *budget* seconds.

    Every *pause* seconds *meanwhile* is called, and what it raises ends the waiting. A thread
    cannot be stopped: one that goes on is left to itself, and nobody looks at what it returns.
    """
    ended: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    thread = threading.Thread(
        target=lambda: ended.put(_attempt(build)), name="headway-builder", daemon=True
    )
    end = time.monotonic() + budget
    thread.start()
    while True:
        left = end - time.monotonic()
        try:
            returned, error = ended.get(timeout=max(0.0, min(left, pause)))
        except queue.Empty:
            if left <= 0:
                raise BudgetExhausted(f"the builder took longer than its {budget:g} s") from None
            meanwhile()
            continue
        if error is not None:
            raise error
        return returned


def _attempt(build: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        returned = build()
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
        return returned, None
    except BaseException as error:
        return None, error


async def _awaited(waiting: Any) -> Any:
    return await waiting
