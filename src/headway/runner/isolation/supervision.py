"""Supervising an isolated run: answering it, and ending it when its time is up."""

import asyncio
import contextlib
import logging
import pickle
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from headway.domain.execution import Outcome
from headway.errors import DefinitionError
from headway.runner.cancellation import Cancellation, StopReason
from headway.runner.isolation.messages import (
    Activating,
    Answer,
    Ended,
    FromChild,
    Job,
    Logged,
    Reported,
    StepStarts,
    Stop,
)
from headway.runner.isolation.process import IsolatedProcess
from headway.runner.outcome import ended_by_itself, failed, killed
from headway.runner.threads import happens, in_daemon_thread
from headway.workflow import Workflow

# Somebody else may be running it already, or will be as soon as this worker has stopped.
HASTE = {StopReason.NOT_OURS: 0.0, StopReason.CUT_OFF: 0.0, StopReason.SHUTDOWN: 0.5}


@dataclass(frozen=True)
class Limits:
    """How long a run may take, and how long it then has to stop by itself, in seconds."""

    timeout: float
    grace: float


@dataclass(frozen=True)
class Services:
    """What the worker does for a run that is elsewhere."""

    before_step: Callable[[str], Awaitable[None]]
    report: Callable[[float, str | None], None]
    activate_many: Callable[[tuple[tuple[str, Any], ...], int], Awaitable[int]]


def pickled(workflow: Workflow[Any]) -> bytes:
    """The steps by their names, for another process to import.

    >>> from os.path import basename
    >>> b"basename" in pickled(Workflow("strip", (basename,), context_type=dict))
    True
    """
    functions = tuple(step.function for step in workflow.steps)
    try:
        return pickle.dumps(functions)
    except Exception as error:
        raise DefinitionError(
            f"workflow {workflow.name!r}: isolated = True: its process cannot import its steps "
            f"({error}); define them with def at the top of a module"
        ) from error


async def run_isolated(
    job: Job, handle: Cancellation, limits: Limits, services: Services
) -> Outcome:
    """Run *job* in a process of its own; that is gone when this returns, however it does."""
    starting = asyncio.ensure_future(in_daemon_thread(IsolatedProcess, job))
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill_what_started)
        raise
    except Exception as error:
        return failed(job.workflow, error)
    try:
        return await Supervision(process, job, handle, limits, services).until_ended()
    finally:
        process.kill()
        process.await_end()


def _kill_what_started(starting: asyncio.Future[IsolatedProcess]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()


class Supervision:
    """One isolated run on its way."""

    def __init__(
        self,
        process: IsolatedProcess,
        job: Job,
        handle: Cancellation,
        limits: Limits,
        services: Services,
    ) -> None:
        self._process = process
        self._handle = handle
        self._limits = limits
        self._services = services
        self._step = job.workflow
        self._loop = asyncio.get_running_loop()
        self._asked_to_stop = asyncio.Event()
        self._said: asyncio.Queue[FromChild | None] = asyncio.Queue()
        self._killed = False

    async def until_ended(self) -> Outcome:
        """Listen until the run says how it ended, or its process is gone."""
        self._handle.attach(lambda: self._loop.call_soon_threadsafe(self._asked_to_stop.set))
        if self._handle.requested:
            self._asked_to_stop.set()
        threading.Thread(target=self._listen, name="headway-isolated", daemon=True).start()
        timekeeper = asyncio.create_task(self._keep_time())
        try:
            return await self._converse()
        finally:
            timekeeper.cancel()
            self._handle.attach(None)

    def _listen(self) -> None:
        message: FromChild | None = None
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the run with it
            while not isinstance(message, Ended):
                try:
                    message = self._process.receive()
                except Exception as error:
                    message = Ended(failed(self._step, error))
                self._loop.call_soon_threadsafe(self._said.put_nowait, message)
                if message is None:
                    return

    async def _keep_time(self) -> None:
        if not await happens(self._asked_to_stop, within=self._limits.timeout):
            self._handle.request(StopReason.TIMEOUT)
        reason = self._handle.reason
        assert reason is not None
        self._process.send(Stop(reason))
        await asyncio.sleep(HASTE.get(reason, self._limits.grace))
        self._killed = True
        self._process.kill()

    async def _converse(self) -> Outcome:
        while (message := await self._said.get()) is not None:
            match message:
                case Ended(outcome):
                    return outcome
                case StepStarts(step):
                    self._step = step
                    await self._answer(self._services.before_step(step))
                case Activating(wanted, max_attempts):
                    await self._answer(self._services.activate_many(wanted, max_attempts))
                case Reported(fraction, note):
                    self._services.report(fraction, note)
                case Logged(record):
                    _log(record)
        return await self._gone()

    async def _answer(self, doing: Awaitable[Any]) -> None:
        try:
            answer = Answer(value=await doing)
        except Exception as error:
            answer = Answer(error=error)
        if self._handle.reason is not None:  # it has to know why before it learns that it stops
            self._process.send(Stop(self._handle.reason))
        try:
            self._process.send(answer)
        except (pickle.PicklingError, TypeError, AttributeError):
            self._process.send(Answer(error=RuntimeError(repr(answer.error))))

    async def _gone(self) -> Outcome:
        if self._killed:
            return killed(self._step, self._handle.reason)
        told = await in_daemon_thread(self._process.how_it_ended)
        return ended_by_itself(self._step, told)


def _log(record: dict[str, Any]) -> None:
    logger = logging.getLogger(record["name"])
    if logger.isEnabledFor(record["levelno"]):
        logger.handle(logging.makeLogRecord(record))
