"""Supervising an isolated run: answering it, and ending it when its time is up."""

import asyncio
import contextlib
import logging
import pickle
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headway.domain.execution import Outcome
from headway.errors import JobCancelled
from headway.observe import told
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
from headway.runner.isolation.process import IsolatedProcess, end_fork_server
from headway.runner.outcome import ended_by_itself, failed, killed, stopped
from headway.runner.secrets import redacted
from headway.runner.threads import happens, in_daemon_thread

# Seconds. A start takes some ten milliseconds: after so long, the fork server hangs.
START_PATIENCE = 60.0

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
    redact: Callable[[str], str]


async def run_isolated(
    job: Job, handle: Cancellation, limits: Limits, services: Services
) -> Outcome:
    """Run *job* in a process of its own; that is gone when this returns, however it does."""
    try:
        process = await _started(job, handle, limits)
    except NotStarted as error:
        return error.outcome
    except Exception as error:
        return failed(job.workflow, error)
    try:
        return await Supervision(process, job, handle, limits, services).until_ended()
    finally:
        process.kill()
        process.await_end()


class NotStarted(Exception):
    """The process of a run did not start in time, or the run was asked to stop before it did."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


async def _started(job: Job, handle: Cancellation, limits: Limits) -> IsolatedProcess:
    """Start the process; a start that hangs is given up, and what it brings later is killed."""
    begun = in_daemon_thread(IsolatedProcess, job)
    starting: asyncio.Future[IsolatedProcess] = asyncio.ensure_future(begun)
    try:
        await _until_started(starting, handle, min(START_PATIENCE, limits.timeout))
        if starting.done() and (handle.reason is None or starting.exception() is None):
            return starting.result()
        if handle.reason is None and limits.timeout <= START_PATIENCE:
            handle.request(StopReason.TIMEOUT)
        if handle.reason is not None:
            stop = JobCancelled("stopped before its process had started")
            raise NotStarted(stopped(job.workflow, handle.reason, stop))
        end_fork_server()
        told = f"its process did not start within {START_PATIENCE:g} seconds"
        raise NotStarted(ended_by_itself(job.workflow, told))
    except BaseException:
        starting.add_done_callback(_kill_what_started)
        raise


async def _until_started(
    starting: asyncio.Future[IsolatedProcess], handle: Cancellation, patience: float
) -> None:
    """Wait for the start, until the run is asked to stop, or for so many seconds."""
    asked_to_stop = asyncio.Event()
    stopping = asyncio.ensure_future(asked_to_stop.wait())
    try:
        with _interrupting(handle, asked_to_stop):
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait((starting, stopping), timeout=patience, return_when=first)
    finally:
        stopping.cancel()


def _kill_what_started(starting: asyncio.Future[IsolatedProcess]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()


@contextlib.contextmanager
def _interrupting(handle: Cancellation, asked_to_stop: asyncio.Event) -> Iterator[None]:
    """Set the event once the run is asked to stop, or at once if it was asked before."""
    loop = asyncio.get_running_loop()
    handle.attach(lambda: loop.call_soon_threadsafe(asked_to_stop.set))
    if handle.requested:
        asked_to_stop.set()
    try:
        yield
    finally:
        handle.attach(None)


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
        threading.Thread(target=self._listen, name="headway-isolated", daemon=True).start()
        timekeeper = asyncio.create_task(self._keep_time())
        try:
            with _interrupting(self._handle, self._asked_to_stop):
                return await self._converse()
        finally:
            timekeeper.cancel()

    def _listen(self) -> None:
        message: FromChild | None = None
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the run with it
            while not isinstance(message, Ended):
                try:
                    message = self._process.receive()
                except BaseException as error:  # to read the user's own objects is user code
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
                    _log(record, self._services.redact)
        return await self._gone()

    async def _answer(self, doing: Awaitable[Any]) -> None:
        try:
            answer = Answer(value=await doing)
        except Exception as error:
            answer = Answer(error=error)
        if self._handle.reason is not None:  # it has to know why before it learns that it stops
            self._process.send(Stop(self._handle.reason))
        self._process.send(_readable(answer))

    async def _gone(self) -> Outcome:
        if self._killed:
            return killed(self._step, self._handle.reason)
        how = await in_daemon_thread(self._process.how_it_ended)
        return ended_by_itself(self._step, how)


def _readable(answer: Answer) -> Answer:
    """The answer with an error that the other process can read, which not every class allows."""
    if answer.error is None:
        return answer
    try:
        pickle.loads(pickle.dumps(answer.error))  # noqa: S301 (pickled here a moment ago)
    except Exception:
        return Answer(error=RuntimeError(told(answer.error)))
    return answer


def _log(record: dict[str, Any], redact: Callable[[str], str]) -> None:
    logger = logging.getLogger(record["name"])
    if logger.isEnabledFor(record["levelno"]):
        logger.handle(redacted(logging.makeLogRecord(record), redact))
