"""``headway run``: one headway process until somebody stops it."""

import sys
from threading import Thread
from typing import Annotated

import typer

import headway
from headway.cli.narration import Narrator, configure_logging
from headway.cli.signals import StopSignals
from headway.cli.target import Target, load
from headway.cli.terminal import complain, first_line, say
from headway.definition.app import Headway
from headway.observe import Event
from headway.service import EVERY_ROLE, Service, prepare
from headway.store.engine import Store
from headway.store.urls import shown
from headway.wakeups import Role

STOPPED = 0

DatabaseUrl = Annotated[
    str | None,
    typer.Option(help="The database, instead of the one the application names.", metavar="URL"),
]


def run(
    target: Target,
    only: Annotated[
        Role | None, typer.Option(help="Run one role; others run in processes of their own.")
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
    configure_logging(quiet=quiet, verbose=verbose)
    _print_lines_at_once()
    signals = StopSignals()
    app = load(target)
    service = _service(app, database_url, EVERY_ROLE if only is None else {only})
    narrator = Narrator()
    app.observer.subscribe(narrator)
    _start(service, signals, "" if quiet else _start_line(target, service))
    signals.wait()
    if not quiet:
        say(_stop_line(narrator.running, app))
    if not _stop(service, signals):
        raise typer.Exit(1)


def _print_lines_at_once() -> None:
    """What jobs print is seen when they print it, also where stdout is a pipe or a file."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def _service(app: Headway, database_url: str | None, roles: frozenset[Role] | set[Role]) -> Service:
    store = Store(database_url or app.database_url)
    try:
        prepare(store)
    except BaseException:
        store.close()
        raise
    return Service(app, roles, store)


def _start(service: Service, signals: StopSignals, line: str) -> None:
    """Start; from the moment anything runs, a signal no longer interrupts but asks to stop."""

    def go(event: Event) -> None:
        if event.name == "declaration.applied":
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
        service.start()
    except BaseException:
        service.store.close()
        raise


def _start_line(target: str, service: Service) -> str:
    manifests = _counted(len(service.app.declaration().manifests), "manifest")
    slots = _counted(service.app.settings.worker_count, "slot")
    roles = [
        f"worker ({slots})" if role is Role.WORKER else role.value
        for role in Role
        if role in service.roles
    ]
    return (
        f"headway {headway.__version__} runs {target} ({manifests}) on {shown(service.store.url)}: "
        f"{', '.join(roles)}; Ctrl-C stops"
    )


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
    """Stop, and keep listening meanwhile; whether everything was finished or handed back."""
    failures: list[BaseException] = []

    def stop() -> None:
        try:
            service.stop()
        except BaseException as error:
            failures.append(error)
        finally:
            signals.stops.put(STOPPED)

    Thread(target=stop, name="headway-stop", daemon=True).start()
    while signals.wait() != STOPPED:
        service.request_stop(grace=0)
    for error in failures:
        complain(f"stopping failed: {first_line(error)}")
    return not failures
