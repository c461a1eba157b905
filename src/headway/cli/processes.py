"""Several headway processes like one: started together, stopped together, replaced when they die.

Each is a fresh interpreter, for a fork would inherit threads and connections half-alive. A pipe
leads to each of them: what it brings is a request to stop, and its end the death of the parent.
"""

import contextlib
import logging
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection

import typer

from headway.cli.dashboard import MaybeDashboard
from headway.cli.database import open_database, patience
from headway.cli.exits import DATABASE_LOST, told_in_one_line
from headway.cli.narration import Narrator, configure_logging, tell_dead_letters
from headway.cli.serving import LAST_SECONDS, Running, serve, start_line
from headway.cli.signals import PULSE, StopSignals
from headway.cli.target import load
from headway.cli.terminal import say
from headway.definition.app import Headway
from headway.history import History
from headway.patience import DatabaseWait
from headway.store.migrate import prepare
from headway_command.stopping import SIGNALS, noted

logger = logging.getLogger("headway.cli")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
DOUBLINGS = 10
STEADY = 60.0
STOP = b"stop"

_context = multiprocessing.get_context("spawn")


def supervise(running: Running, signals: StopSignals) -> int:
    """Keep ``running.processes`` processes going until *signals* say stop; the worst exit code.

    All of them end when one has lost its database file.

    Whatever is wrong with the application or its database is said here, once, before any starts.

    >>> supervise(Running("hello:hw", processes=4), StopSignals())  # doctest: +SKIP
    0
    """
    configure_logging(quiet=running.quiet, verbose=running.verbose, several=True)
    app = load(running.target)
    app.observer.subscribe(Narrator())
    address = running.database_url or app.database_url
    wait = patience(address, app, signals)
    _look_into_database(address, wait)
    dashboard = MaybeDashboard(app, address, running.dashboard, None, wait)
    signals.install()
    for line in filter(None, () if running.quiet else (start_line(running, app), dashboard.line)):
        say(line)
    crew = [Member(replace(running, dashboard=None)) for _ in range(running.processes)]
    try:
        lost = False
        while not lost and signals.wait(time.monotonic() + PULSE) is None:
            lost = any(member.lost_its_database() for member in crew)
            for member in () if lost else crew:
                member.replace_if_ended()
        if lost:
            for member in crew:
                member.ask_to_stop()  # and once more below: a job that goes on is handed back
        elif not running.quiet:
            say(_stop_line(app))
        return _stop(crew, signals, app.settings.shutdown_timeout.total_seconds())
    finally:
        dashboard.stop()
        for member in crew:
            member.let_go()


def _look_into_database(address: str, wait: DatabaseWait) -> None:
    store = open_database(address)
    try:
        wait(lambda: prepare(store))
        tell_dead_letters(wait(History(store).dead_letters.awaiting))
    finally:
        store.close()


def _stop_line(app: Headway) -> str:
    seconds = f"{app.settings.shutdown_timeout.total_seconds():g} s"
    return f"stopping: finishing running jobs (up to {seconds}; Ctrl-C again hands them back)"


def _stop(crew: "list[Member]", signals: StopSignals, grace: float) -> int:
    """Stop all, and keep listening meanwhile; one that gives no sign of life is killed."""
    for member in crew:
        member.ask_to_stop()
    # Each gives up by itself just before.
    deadline = time.monotonic() + grace + 2 * LAST_SECONDS
    while any(member.is_alive() for member in crew):
        if signals.wait(min(deadline, time.monotonic() + PULSE)) is not None:
            deadline = min(deadline, time.monotonic() + 2 * LAST_SECONDS)
            for member in crew:
                member.ask_to_stop()
        if time.monotonic() >= deadline:
            for member in crew:
                member.kill()
    return max(member.exit_code() for member in crew)


class Member:
    """One place in the crew: the process that has it now, and when the next one may have it."""

    def __init__(self, running: Running, clock: Callable[[], float] = time.monotonic) -> None:
        self._running = running
        self._clock = clock
        self._ends_in_a_row = 0
        self._next_start: float | None = None
        self._start()

    def _start(self) -> None:
        theirs, self._orders = _context.Pipe(duplex=False)
        self._process = _context.Process(
            target=child_main, args=(self._running, theirs), name="headway-run"
        )
        # The first start of the tracker would unblock the signals that are blocked here.
        resource_tracker.ensure_running()
        # Until it can say what it ends of, a signal to all of us waits.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        theirs.close()
        self._started = self._clock()
        self._next_start = None

    def is_alive(self) -> bool:
        """Whether there is a process at this moment."""
        return self._process.is_alive()

    def replace_if_ended(self) -> None:
        """Start another in place of one that has ended, after a pause that grows each time."""
        if self._process.is_alive():
            return
        if self._next_start is None:
            steady = self._clock() - self._started >= STEADY
            self._ends_in_a_row = 1 if steady else self._ends_in_a_row + 1
            pause = pause_before(self._ends_in_a_row)
            self._next_start = self._clock() + pause
            self._orders.close()
            told = f"process {self._process.pid} {_how_it_ended(self._process.exitcode)}"
            logger.warning("%-11s %s; another starts in %g s", "ended", told, pause)
        elif self._clock() >= self._next_start:
            self._start()

    def lost_its_database(self) -> bool:
        """Whether it ended because the database file was deleted or replaced.

        The others use the same file, and so does the dashboard.
        """
        return not self._process.is_alive() and self._process.exitcode == DATABASE_LOST

    def ask_to_stop(self) -> None:
        """Once: finish what runs. Twice: hand it back."""
        with contextlib.suppress(OSError):
            self._orders.send_bytes(STOP)

    def kill(self) -> None:
        """End it without another word."""
        self._process.kill()
        self._process.join()

    def let_go(self) -> None:
        """Nobody is left to ask it anything: it stops by itself, at once."""
        self._orders.close()

    def exit_code(self) -> int:
        """As a shell would tell it."""
        code = self._process.exitcode or 0
        return code if code >= 0 else 128 - code


def pause_before(ends_in_a_row: int) -> float:
    """Seconds before a process is replaced: a crash now and then costs little, a loop of them too.

    >>> [pause_before(number) for number in (1, 2, 3, 100)]
    [0.5, 1.0, 2.0, 30.0]
    """
    return float(min(FIRST_PAUSE * 2 ** min(ends_in_a_row - 1, DOUBLINGS), LONGEST_PAUSE))


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def child_main(running: Running, parent: Connection) -> None:
    """One of the processes, until its parent says stop or is gone.

    >>> child_main(Running("hello:hw", processes=4), parent)  # doctest: +SKIP
    """
    try:
        with told_in_one_line(), _quiet_stop():
            signals = StopSignals()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            signals.obey(parent)
            code = serve(running, signals)
    except typer.Exit as end:
        code = end.exit_code
    sys.exit(code)


@contextlib.contextmanager
def _quiet_stop() -> Iterator[None]:
    """End with 0 and no message on any stop signal during the start: the parent has logged it.

    Also on Ctrl-C, which reaches the whole group: the parent was running, so it is a usual stop.
    """
    try:
        yield
    except BaseException:
        if noted() is None:
            raise
        raise typer.Exit(0) from None
