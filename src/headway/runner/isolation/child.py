"""The inside of an isolated run's process."""

import asyncio
import contextlib
import fcntl
import logging
import os
import pickle
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any

from headway.definition.registry import Registry
from headway.definition.replacing import act_on_sandbox
from headway.domain.execution import Outcome
from headway.run import Run
from headway.runner.attempt import attempt
from headway.runner.cancellation import Cancellation
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
from headway.runner.outcome import failed
from headway.runner.secrets import RunSecrets

CUT_OFF = 70


def main(connection: Connection, ends_with_worker: Connection, job: Job) -> None:
    """Run the job, say how it ended, and be gone, whatever threads it leaves behind."""
    _leave_the_terminal()
    _die_with_the_worker(ends_with_worker)
    handle = Cancellation()
    worker = Worker(connection, handle)
    _log_through(worker)
    try:
        _limit_memory(job.max_memory)
        outcome = _run(job, worker, handle)
    except BaseException as error:
        outcome = failed("LoadExecution", error)
    worker.tell(Ended(outcome))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _leave_the_terminal() -> None:
    """The worker decides when this run ends, not a Ctrl-C that was meant for the worker."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _die_with_the_worker(ends_with_worker: Connection) -> None:
    """Have the kernel kill this process once the worker is gone, even inside code that never
    lets Python run anything else."""
    descriptor = ends_with_worker.fileno()
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
    if ends_with_worker.poll():  # it was gone before we listened
        os._exit(CUT_OFF)


def _limit_memory(most: int | None) -> None:
    if most is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


class Worker:
    """The worker at the other end: told things, and asked."""

    def __init__(self, connection: Connection, handle: Cancellation) -> None:
        self._connection = connection
        self._handle = handle
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="headway-listen", daemon=True).start()

    def tell(self, message: FromChild) -> None:
        """Send without waiting for an answer."""
        with self._sending:
            self._connection.send(message)

    def ask(self, message: FromChild) -> Any:
        """Send and wait for the answer; an error it brings is raised here."""
        with self._asking:
            self.tell(message)
            answer = self._answers.get()
        if answer.error is not None:
            raise answer.error
        return answer.value

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = self._connection.recv()
                if isinstance(message, Stop):
                    self._handle.request(message.reason)
                else:
                    self._answers.put(message)
        os._exit(CUT_OFF)  # nobody is left who could record anything


def _run(job: Job, worker: Worker, handle: Cancellation) -> Outcome:
    if job.sandbox is not None:  # before the job's modules are imported
        act_on_sandbox(job.sandbox)
    # Written by our own worker a moment ago, never stored.
    steps = pickle.loads(job.code)  # noqa: S301
    registered = Registry().register(job.workflow, steps, Run)
    try:
        value = registered.input_type.decode(job.input, job.subject)
    except BaseException as error:  # an input's validators are user code and may raise anything
        secrets = RunSecrets(registered.input_type, job.input)
        return failed("ValidateState", error, secrets.text)
    watch = ProcessWatch(job, worker, handle, RunSecrets(registered.input_type, job.input, value))
    context = _context(job, worker, handle, watch)
    return asyncio.run(
        attempt(registered.workflow, value, context, watch, keep_output=job.keep_output)
    )


class ProcessWatch:
    """Asks the worker before each step; a sync step has the whole process, so it gets the main
    thread, as in a script."""

    def __init__(self, job: Job, worker: Worker, handle: Cancellation, secrets: RunSecrets) -> None:
        self.step = job.workflow
        self.secrets = secrets
        self.logger = secrets.logger(logging.getLogger(f"headway.run.{job.workflow}"))
        self.loop: asyncio.AbstractEventLoop | None = None
        self.handle = handle
        self.handed_over: tuple[str, ...] = ()
        self._worker = worker

    def hand_over(self, actions: tuple[str, ...]) -> None:
        """Remember what a person is to do if the run completes; the outcome takes it along."""
        self.handed_over = actions

    async def before_step(self, step: str) -> None:
        """Have *step* recorded as running, unless the run was asked to stop."""
        self.step = step
        self._worker.ask(StepStarts(step))

    def steps_that_ran(self) -> None:
        """The worker knows them: it was asked before each."""

    async def call_sync(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a sync step here."""
        self.handle.enter_thread()
        try:
            return function(*arguments)
        finally:
            self.handle.leave_thread()


def _context(job: Job, worker: Worker, handle: Cancellation, watch: ProcessWatch) -> Run:
    def report(fraction: float, note: str | None) -> None:
        worker.tell(Reported(fraction, note))

    def activate_many(activations: Iterable[tuple[str, Any]], max_attempts: int) -> int:
        return int(worker.ask(Activating(tuple(activations), max_attempts)))

    return Run(
        execution_id=job.execution_id,
        workflow=job.workflow,
        manifest=job.manifest,
        attempt=job.attempt,
        scheduled_for=job.scheduled_for,
        idempotency_key=job.idempotency_key,
        logger=watch.logger,
        _report=report,
        _is_cancelled=lambda: handle.requested,
        _activate_many=activate_many,
        _hand_over=watch.hand_over,
    )


class _Passing(logging.Handler):
    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker

    def emit(self, record: logging.LogRecord) -> None:
        told = dict(record.__dict__, msg=self.format(record), args=None, exc_info=None)
        plain = {key: told[key] for key in told if isinstance(told[key], str | int | float | None)}
        self._worker.tell(Logged(plain))


def _log_through(worker: Worker) -> None:
    """Records go to the worker's handlers, which this process has none of."""
    root = logging.getLogger()
    root.addHandler(_Passing(worker))
    root.setLevel(logging.INFO)
