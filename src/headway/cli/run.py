"""``headway run``: one headway process until somebody stops it."""

import os
import sys
import time
from threading import Thread
from typing import Annotated, NoReturn

import typer

import headway
from headway.cli.database import database_option, open_database
from headway.cli.narration import (
    Narrator,
    configure_logging,
    tell_abandoned_jobs_once,
    tell_dead_letters,
)
from headway.cli.signals import StopSignals
from headway.cli.target import Target, load
from headway.cli.terminal import complain, first_line, say
from headway.definition.app import Headway
from headway.history import History
from headway.observe import Event
from headway.service import EVERY_ROLE, Service
from headway.store.migrate import prepare
from headway.store.urls import shown
from headway.wakeups import Role

STOPPED = 0
LAST_SECONDS = 5.0

DatabaseUrl = Annotated[
    str | None, database_option("The database, instead of the one the application names.")
]


def run(
    target: Target,
    only: Annotated[
        list[Role] | None,
        typer.Option(
            metavar="ROLE",
            help="Run one role: manager, dispatcher or worker. Others run in their own processes.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every event.")] = False,
) -> None:
    """Run an application: its manager, dispatcher and workers.

    The first SIGTERM or Ctrl-C lets running jobs finish, the second hands them back to the queue.
    """
    roles = _roles(only)
    if quiet and verbose:
        raise typer.BadParameter("--quiet and --verbose exclude each other")
    configure_logging(quiet=quiet, verbose=verbose)
    _print_lines_at_once()
    signals = StopSignals()
    app = load(target)
    service = _service(app, database_url, roles)
    narrator = Narrator()
    app.observer.subscribe(narrator)
    _start(service, signals, "" if quiet else _start_line(target, service))
    signals.wait()
    if not quiet:
        say(_stop_line(narrator.running, app))
    if not _stop(service, signals):
        raise typer.Exit(1)


def _roles(only: list[Role] | None) -> frozenset[Role]:
    roles = frozenset(only or EVERY_ROLE)
    if only and len(roles) > 1:
        raise typer.BadParameter(
            "one role per process; without it, all of them run in this one", param_hint="'--only'"
        )
    return roles


def _print_lines_at_once() -> None:
    """What jobs print is seen when they print it, also where stdout is a pipe or a file."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def _service(app: Headway, database_url: str | None, roles: frozenset[Role]) -> Service:
    store = open_database(database_url or app.database_url)
    try:
        prepare(store)
    except BaseException:
        store.close()
        raise
    return Service(app, roles, store)


def _start(service: Service, signals: StopSignals, line: str) -> None:
    """Start; from the moment anything runs, a signal no longer interrupts but asks to stop."""

    def go(event: Event) -> None:
        if event.name in ("declaration.applied", "declaration.outdated"):
            begin()

    def begin() -> None:
        signals.install()
        if line:
            say(line)

    if Role.MANAGER in service.roles:
        service.app.observer.subscribe(go)
    else:
        begin()
    try:
        tell_dead_letters(History(service.store).dead_letters())
        service.start()
    except BaseException:
        service.store.close()
        raise


def _start_line(target: str, service: Service) -> str:
    manifests = _counted(len(service.app.declaration().manifests), "manifest")
    return (
        f"headway {headway.__version__} runs {target} ({manifests}) on {shown(service.store.url)}: "
        f"{_told_roles(service)}; Ctrl-C stops"
    )


def _told_roles(service: Service) -> str:
    settings = service.app.settings
    slots = _counted(settings.worker_count, "slot")
    switches = {
        Role.MANAGER: ("manager_enabled", settings.manager_enabled),
        Role.DISPATCHER: ("dispatcher_enabled", settings.dispatcher_enabled),
    }
    running, off = [], ""
    for role in (role for role in Role if role in service.roles):
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
        f"stopping: finishing {_counted(running, 'running job')} "
        f"(up to {seconds}; Ctrl-C again hands them back)"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _stop(service: Service, signals: StopSignals) -> bool:
    """Stop, and keep listening meanwhile; whether everything was finished or handed back.

    Never for longer than jobs may take to finish and a little more, whatever hangs.
    """
    tell_abandoned_jobs_once()
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
