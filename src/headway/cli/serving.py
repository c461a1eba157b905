"""One headway process, from its start until it is asked to stop and has stopped."""

import os
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from threading import Thread
from typing import NoReturn

import headway
from headway.cli.dashboard import MaybeDashboard, Wanted
from headway.cli.database import open_database, patience
from headway.cli.exits import DATABASE_LOST, FAILURE, WORN_OUT
from headway.cli.narration import (
    Narrator,
    configure_logging,
    silence_abandoned_jobs,
    tell_dead_letters,
)
from headway.cli.signals import StopSignals
from headway.cli.target import load
from headway.cli.terminal import complain, first_line, say
from headway.collector import spare_the_collector
from headway.definition.app import Headway
from headway.history import History
from headway.observe import Event
from headway.patience import DatabaseWait, StoppedWaiting
from headway.service import Service
from headway.store.migrate import prepare
from headway.store.urls import described
from headway.telemetry.automatic import export_if_wanted
from headway.wakeups import EVERY_ROLE, Role

STOPPED = 0
# Events after which a process ends, and its exit code then.
ENDS_BY_ITSELF = {"service.worn_out": WORN_OUT, "service.database_lost": DATABASE_LOST}
LAST_SECONDS = 5.0


@dataclass(frozen=True)
class Running:
    """What ``headway run`` was asked to run, and how much it says."""

    target: str
    roles: frozenset[Role] = EVERY_ROLE
    database_url: str | None = None
    quiet: bool = False
    verbose: bool = False
    processes: int = 1
    dashboard: Wanted | None = None


def serve(running: Running, signals: StopSignals) -> int:
    """Run until *signals* say stop, half of the slots are stuck, or the database file is lost.

    Returns the exit code.

    Of several processes none speaks of starting and stopping: the one that starts them does.

    >>> serve(Running("hello:hw"), StopSignals())  # doctest: +SKIP
    0
    """
    several, quiet = running.processes > 1, running.quiet
    configure_logging(quiet=quiet, verbose=running.verbose, several=several)
    _print_lines_at_once()
    app = load(running.target)
    narrator = Narrator()
    app.observer.subscribe(narrator)
    wait = patience(running.database_url or app.database_url, app, signals)
    service = _service(app, running, wait)
    export_if_wanted(app, service.store, os.environ)
    dashboard = _dashboard(service, running, wait)
    lines = () if quiet or several else (start_line(running, app), dashboard.line)
    spare_the_collector()
    try:
        app.observer.subscribe(lambda event: _stop_by_itself(event, signals))
        _start(service, signals, lines, None if several else wait)
        asked = signals.wait()
        if not (quiet or several or asked == DATABASE_LOST):
            say(_stop_line(narrator.running, app))
        if not _stop(service, signals):
            return FAILURE
    except StoppedWaiting:
        if not (quiet or several):
            say(_stop_line(0, app))
        return 0
    finally:
        dashboard.stop()
    return asked if asked in (WORN_OUT, DATABASE_LOST) else 0


def _dashboard(service: Service, running: Running, wait: DatabaseWait) -> MaybeDashboard:
    address = running.database_url or service.app.database_url
    try:
        return MaybeDashboard(service.app, address, running.dashboard, service.health, wait)
    except BaseException:
        service.store.close()
        raise


def _stop_by_itself(event: Event, signals: StopSignals) -> None:
    if event.name in ENDS_BY_ITSELF:
        signals.stops.put(ENDS_BY_ITSELF[event.name])


def _print_lines_at_once() -> None:
    """What jobs print is seen when they print it, also where stdout is a pipe or a file."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def _service(app: Headway, running: Running, wait: DatabaseWait) -> Service:
    store = open_database(running.database_url or app.database_url)
    try:
        wait(lambda: prepare(store))
    except BaseException:
        store.close()
        raise
    return Service(app, running.roles, store, wait)


def _start(
    service: Service, signals: StopSignals, lines: Collection[str], alone: DatabaseWait | None
) -> None:
    """Start; from the moment anything runs, a signal no longer interrupts but asks to stop.

    A process that runs *alone*, not as one of several, reports waiting dead letters first.
    """

    def go(event: Event) -> None:
        if event.name in ("declaration.applied", "declaration.outdated"):
            begin()

    def begin() -> None:
        signals.install()
        for line in filter(None, lines):
            say(line)

    if Role.MANAGER in service.roles:
        service.app.observer.subscribe(go)
    else:
        begin()
    try:
        if alone is not None:
            tell_dead_letters(alone(History(service.store).dead_letters.awaiting))
        service.start()
    except BaseException:
        service.store.close()
        raise


def start_line(running: Running, app: Headway) -> str:
    """What runs, where, and how to end it.

    >>> start_line(Running("hello:hw"), app)  # doctest: +SKIP
    'headway 0.1.0 runs hello:hw (1 manifest) on ...; Ctrl-C stops'
    """
    manifests = counted(len(app.declaration().manifests), "manifest")
    database = described(running.database_url or app.database_url)
    several = f"{running.processes} processes, each " if running.processes > 1 else ""
    return (
        f"headway {headway.__version__} runs {running.target} ({manifests}) on {database}: "
        f"{several}{_told_roles(running.roles, app)}; Ctrl-C stops"
    )


def _told_roles(roles: Collection[Role], app: Headway) -> str:
    settings = app.settings
    slots = counted(settings.worker_count, "slot")
    switches = {
        Role.MANAGER: ("manager_enabled", settings.manager_enabled),
        Role.DISPATCHER: ("dispatcher_enabled", settings.dispatcher_enabled),
    }
    running, off = [], ""
    for role in (role for role in Role if role in roles):
        switch, on = switches.get(role, ("", True))
        if on:
            running.append(f"worker ({slots})" if role is Role.WORKER else role.value)
        else:
            off += f" ({role.value} switched off by {switch})"
    return (", ".join(running) or "nothing") + off


def _stop_line(running: int, app: Headway) -> str:
    if not running:
        return "stopping: nothing is running"
    seconds = f"{app.settings.shutdown_timeout.total_seconds():g} s"
    return (
        f"stopping: finishing {counted(running, 'running job')} "
        f"(up to {seconds}; Ctrl-C again hands them back)"
    )


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "slot"), counted(2, "slot")
    ('1 slot', '2 slots')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _stop(service: Service, signals: StopSignals) -> bool:
    """Stop, and keep listening meanwhile; whether everything was finished or handed back.

    Never for longer than jobs may take to finish and a little more, whatever hangs.
    """
    silence_abandoned_jobs()
    failures: list[BaseException] = []

    def stop() -> None:
        try:
            service.stop()
        except BaseException as error:
            failures.append(error)
        finally:
            signals.stops.put(STOPPED)

    Thread(target=stop, name="headway-stop", daemon=True).start()
    grace = service.app.settings.shutdown_timeout.total_seconds()
    deadline = time.monotonic() + grace + LAST_SECONDS
    while (asked := signals.wait(deadline)) != STOPPED:
        if asked is None:
            _give_up()
        service.request_stop(grace=0)
        deadline = min(deadline, time.monotonic() + LAST_SECONDS)
    for error in failures:
        complain(f"stopping failed: {first_line(error)}")
    return not failures


def _give_up() -> NoReturn:
    """End without waiting for any thread; the usual end would wait for those of the database."""
    complain(
        "the database or a job does not answer; what was running is found by its owner being gone"
    )
    os._exit(1)
