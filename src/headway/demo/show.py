"""Runs the demo: a folder, the application, a view of it, and a summary at the end."""

import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from rich.console import Console

from headway.definition.app import Headway
from headway.demo.folders import kept_or_temporary
from headway.demo.pipeline import build
from headway.demo.plain import Plain
from headway.demo.screen import Screen
from headway.demo.snapshot import Snapshots
from headway.demo.summary import table
from headway.health import Health
from headway.history import History
from headway.service import Service
from headway.store.engine import TRANSIENT, Store
from headway.store.migrate import prepare

REFRESH = 1 / 8

View = Screen | Plain
Stops = SimpleQueue[int]


class _Console(Console):
    """Stdout; when nobody reads it any more, the demo ends instead of the thread that printed."""

    def __init__(self, stops: Stops) -> None:
        super().__init__(highlight=False, markup=False, emoji=False)
        self._stops = stops

    def on_broken_pipe(self) -> None:
        """Print nothing more and ask to stop."""
        self.quiet = True
        self._stops.put(0)


class Dashboard(Protocol):
    """What serves a dashboard beside the demo; *line* says where, or why there is none."""

    line: str

    def stop(self) -> None:
        """End it."""


OpenDashboard = Callable[[Headway, Callable[[], Health]], Dashboard]


def show(
    directory: Path | None, seconds: float | None, stops: Stops, open_dashboard: OpenDashboard
) -> None:
    """Run the demo until *seconds* are over or something is in *stops*; then sum it up.

    >>> show(None, 20, SimpleQueue(), open_dashboard)  # doctest: +SKIP
    """
    _keep_logs_off_the_screen()
    console = _Console(stops)
    with kept_or_temporary(directory) as home:
        app = build(home)
        with closing(app.open_store()) as store:
            prepare(store)
            _watch(app, _view(console, app, store), seconds, stops, open_dashboard)
            console.print()
            console.print(table(History(store)))
    console.print()
    _say_what_next(console, directory)


def _keep_logs_off_the_screen() -> None:
    """Everything worth knowing is shown; a stray warning would tear the picture apart."""
    logger = logging.getLogger("headway")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _view(console: Console, app: Headway, store: Store) -> View:
    # Not Rich's idea of a terminal, which a variable such as FORCE_COLOR changes.
    if sys.stdout is not None and sys.stdout.isatty() and not console.is_dumb_terminal:
        return Screen(console, Snapshots(History(store)), app.settings.worker_count)
    return Plain(console, app)


def _watch(
    app: Headway,
    view: View,
    seconds: float | None,
    stops: Stops,
    open_dashboard: OpenDashboard,
) -> None:
    service = Service(app)
    dashboard = open_dashboard(app, service.health)
    try:
        with view:
            view.announce(dashboard.line)
            service.start()
            try:
                _until_stopped(view, seconds, stops)
            finally:
                _stop(service, view, stops)
    finally:
        dashboard.stop()


def _stop(service: Service, view: View, stops: Stops) -> None:
    """Stop while the view goes on; being asked once more hands back what still runs."""
    stopping = Thread(target=service.stop, name="headway-stop", daemon=True)
    stopping.start()
    view.say("finishing")
    while stopping.is_alive():
        if _pause(view, REFRESH, stops):
            service.request_stop(grace=0)


def _until_stopped(view: View, seconds: float | None, stops: Stops) -> None:
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = REFRESH if end is None else min(REFRESH, end - time.monotonic())
        if left <= 0 or _pause(view, left, stops):
            return


def _pause(view: View, seconds: float, stops: Stops) -> bool:
    """Redraw and wait a moment; whether somebody asked to stop meanwhile."""
    try:
        view.refresh()
    except TRANSIENT:
        pass  # what cannot be read now is drawn the next time
    except OSError:
        return True  # the terminal is gone
    try:
        stops.get(timeout=seconds)
    except Empty:
        return False
    return True


def _say_what_next(console: Console, directory: Path | None) -> None:
    again = called_as(sys.argv[0], sys.executable)
    told = (
        f"All of it was temporary; {again} demo --directory demo keeps it."
        if directory is None
        else f"Database, data and reports are in {directory}; the same command goes on."
    )
    console.print(told, soft_wrap=True)
    next_step = "Next: write the program in README.md to hello.py, then:"
    console.print(f"{next_step} {again} run hello:hw", soft_wrap=True)


def called_as(script: str, python: str) -> str:
    """How to call headway again from this folder, when *python* was called with *script*.

    >>> called_as("/opt/tools/bin/headway", "/opt/tools/bin/python")
    '/opt/tools/bin/headway'
    """
    if Path(script).name == "headway":
        return _program(script)
    return f"{_program(python)} -m headway"


def _program(path: str) -> str:
    """Its name where the shell finds it by that, else its path, short if it lies below here."""
    program = Path(os.path.abspath(path))
    found = shutil.which(program.name)
    if found is not None and os.path.abspath(found) == str(program):
        return program.name
    here = Path.cwd()
    return str(program.relative_to(here) if here in program.parent.parents else program)
