"""What a Celery worker does with a message: claim the execution that it names, and run it."""

import logging
import os
import threading
import time
from multiprocessing import process
from typing import Any

from headway.definition.app import Headway
from headway.domain.execution import ExecutionState
from headway.domain.text import shown
from headway.errors import HeadwayError
from headway.executor import Executor
from headway.store.engine import TRANSIENT

logger = logging.getLogger("headway")

NO_PROCESSES = (
    "workflow %r: isolated = True: a pool of greenlets cannot watch over its process, so that this "
    "worker sends it back; have a worker with --pool=prefork or --pool=threads run it"
)

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 4.0

# For so long a message waits for a database that is away; then headway sends it again, later.
PATIENCE = 60.0

GREATEST_ID = 2**63 - 1

# As it is before any fork, which is when applications are imported.
PYTHONS_OWN = process.current_process()


class Receiver:
    """The executor of this process, opened once in it and never inherited.

    >>> receiver = Receiver(Headway())
    >>> receiver.receive("7; DROP TABLE users")  # is refused, and logged
    """

    def __init__(self, hw: Headway) -> None:
        self._hw = hw
        self._process: int | None = None
        self._opening = threading.Lock()
        self._executor: Executor | None = None
        self._closed = False
        self._sent_back: frozenset[str] = frozenset()

    def receive(self, *arguments: Any, **named: Any) -> str | None:
        """Run the execution that a message names; whatever else it says is refused."""
        execution_id = _only_id(arguments, named)
        if execution_id is None:
            self._hw.observer.emit("delivery.refused", told=shown(named or arguments))
            return None
        ended = self._patiently(execution_id)
        if ended is None:
            self._hw.observer.emit("delivery.ignored", execution_id=execution_id)
        return ended

    def open_soon(self, *, forked: bool, green: bool = False) -> None:
        """Open the executor without keeping Celery waiting; it is tried again until it is open.

        In a *green* pool no isolated run can be watched over: they go back to the queue.
        """
        if green:
            self._sent_back = frozenset(self._isolated())
            for name in sorted(self._sent_back):
                logger.warning(NO_PROCESSES, name)
        if forked:
            allow_processes()
        threading.Thread(target=self._open_patiently, name="headway-open", daemon=True).start()

    def close(self) -> None:
        """Finish what runs, or hand it back, and leave."""
        if self._process != os.getpid():
            return
        self._closed = True
        with self._opening:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.__exit__()

    def _isolated(self) -> list[str]:
        registry = self._hw.registry
        return [name for name in registry.names() if registry.find(name).isolation is not None]

    def _patiently(self, execution_id: int) -> ExecutionState | None:
        """A database that is away is waited for; whoever gives up is sent the message again."""
        give_up, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
        while True:
            try:
                return self._open().run(execution_id)
            except (*TRANSIENT, HeadwayError) as error:
                self._hw.observer.loop_failed("celery", error)
                if self._closed or time.monotonic() > give_up:
                    return None
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _open_patiently(self) -> None:
        pause = FIRST_PAUSE
        while not self._closed:
            try:
                self._open()
            except Exception as error:
                self._hw.observer.loop_failed("celery", error)
            else:
                return
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _open(self) -> Executor:
        self._forget_parent()
        with self._opening:
            if self._closed:
                raise HeadwayError("this Celery worker stops and runs nothing more")
            if self._executor is None:
                self._executor = Executor(self._hw, but=self._sent_back).__enter__()
            return self._executor

    def _forget_parent(self) -> None:
        """What was opened before a fork belongs to the parent, locks that were held included."""
        if self._process != os.getpid():
            self._opening = threading.Lock()
            self._executor, self._closed = None, False
            self._process = os.getpid()


def allow_processes() -> None:
    """Let isolated runs have their processes here as well.

    Celery's own multiprocessing has put its process in the place of Python's: a daemon, which may
    have no children lest they stay behind. An isolated run dies with whoever started it.
    """
    PYTHONS_OWN.name = process.current_process().name  # log lines tell it
    # Python has no public way to say who the current process is, hence none with a type.
    process._current_process = PYTHONS_OWN  # type: ignore[attr-defined]


def _only_id(arguments: tuple[Any, ...], named: dict[str, Any]) -> int | None:
    if named or len(arguments) != 1 or type(arguments[0]) is not int:
        return None
    return arguments[0] if 0 < arguments[0] <= GREATEST_ID else None
