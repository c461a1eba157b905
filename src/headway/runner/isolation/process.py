"""The process of one isolated run, as its worker sees it."""

import atexit
import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import sys
import weakref
from multiprocessing.connection import wait

from headway.runner.isolation import child
from headway.runner.isolation.messages import FromChild, FromWorker, Job

LAST_MOMENT = 1.0

_living: weakref.WeakSet["IsolatedProcess"] = weakref.WeakSet()


class IsolatedProcess:
    """Starts with the job; ends with it, when it is killed, or when its worker does.

    >>> process = IsolatedProcess(job)  # doctest: +SKIP
    >>> process.receive()               # doctest: +SKIP
    StepStarts(step='load')
    """

    def __init__(self, job: Job) -> None:
        # Forked from a process that has imported headway and does nothing else: quick, and without
        # the threads and connections of this one, which a plain fork would inherit half-alive.
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(_preloaded())
        self._connection, theirs = forks.Pipe()
        # Nothing is ever sent here: that this end closes is what the process dies of.
        ends_with_us, self._alive = forks.Pipe(duplex=False)
        self._process = forks.Process(
            target=child.main, args=(theirs, ends_with_us, job), name=f"headway-{job.subject}"
        )
        self._process.start()
        theirs.close()
        ends_with_us.close()
        _living.add(self)

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return self._process.pid

    @property
    def goes_on(self) -> bool:
        """Whether the process has not ended."""
        return self._process.exitcode is None

    def receive(self) -> FromChild | None:
        """Wait for what it says next; None when it has ended and everything was read."""
        ready = wait([self._connection, self._process.sentinel])
        if self._connection not in ready:
            return None
        try:
            message: FromChild = self._connection.recv()
        except (EOFError, ConnectionError):
            return None
        return message

    def send(self, message: FromWorker) -> None:
        """Tell it something; one that has ended does not mind."""
        with contextlib.suppress(OSError):
            self._connection.send(message)

    def how_it_ended(self) -> str:
        """In a few words: the signal that ended it, or its exit code.

        >>> IsolatedProcess(job).how_it_ended()  # doctest: +SKIP
        'its process was ended by SIGSEGV'
        """
        self._process.join(LAST_MOMENT)
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended by itself, with exit code {code}"

    def await_end(self) -> None:
        """Return when it is gone: what is killed may still be there for a moment."""
        self._process.join(LAST_MOMENT)

    def kill(self) -> None:
        """End it now, together with the processes it started itself; fine if it has ended."""
        pid = self._process.pid
        if pid is None or self._process.exitcode is not None:
            return
        # It leads a process group as soon as it runs; before that it has no descendants.
        with contextlib.suppress(OSError, AttributeError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._process.kill()


def _preloaded() -> list[str]:
    # The program's main module is imported again in each process: the command's is expensive.
    return [name for name in (child.__name__, "headway.cli") if name in sys.modules]


def end_fork_server() -> None:
    """Kill a fork server that hangs, so that the next start begins another.

    It is left alone while a process that it has started goes on: the end of the fork server would
    pass for the end of that process.
    """
    if any(process.goes_on for process in list(_living)):
        return
    # multiprocessing notices at the next start that its server is gone, but ends none by itself.
    server = getattr(multiprocessing.forkserver, "_forkserver", None)
    pid = getattr(server, "_forkserver_pid", None)
    if pid is not None:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


@atexit.register
def _end_all() -> None:
    """multiprocessing waits for its processes when the interpreter exits; these must not be."""
    for process in list(_living):
        process.kill()
