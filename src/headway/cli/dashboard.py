"""The dashboard of a command: its options, and opening it or saying in one line why not."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol

import typer

from headway.cli.database import open_database
from headway.definition.app import Headway
from headway.errors import MissingExtra
from headway.extras import require
from headway.health import Health
from headway.store.engine import Store
from headway.store.migrate import prepare

LAST_PORT = 65535

Host = Annotated[
    str | None,
    typer.Option(
        metavar="HOST",
        help="The address the dashboard listens on; 127.0.0.1 unless dashboard_host says more.",
        show_default=False,
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        callback=lambda port: _checked_port(port),
        help="The dashboard's port, 0 for any that is free; 8700 unless dashboard_port says more.",
        show_default=False,
    ),
]


def _checked_port(port: int | None) -> int | None:
    # Not by Typer's own limits, which take a third of a narrow help page.
    if port is not None and not 0 <= port <= LAST_PORT:
        raise typer.BadParameter(f"{port} is not from 0 to {LAST_PORT}; for example --port 8700")
    return port


class Dashboard(Protocol):
    """What serves it; *entrance* is the address that lets in whoever opens it first."""

    entrance: str

    def stop(self) -> None:
        """End it."""


@dataclass(frozen=True)
class Wanted:
    """Where a dashboard is to be served; None leaves it to the settings."""

    host: str | None = None
    port: int | None = None


def open_dashboard(
    app: Headway, address: str, wanted: Wanted, health: Callable[[], Health] | None = None
) -> Dashboard:
    """Serve the dashboard of *app* on the database at *address*, with connections of its own.

    >>> open_dashboard(app, app.database_url, Wanted(port=0)).entrance  # doctest: +SKIP
    'http://127.0.0.1:40123/?token=vFq1…'
    """
    require("web")
    # By name, for web and cli stand beside each other and the packages may be missing.
    web = importlib.import_module("headway.web.serving")
    store: Store = open_database(address, web.CONNECTIONS)
    try:
        prepare(store, to_write=False)
        dashboard: Dashboard = web.Dashboard(app, store, wanted.host, wanted.port, health)
    except BaseException:
        store.close()
        raise
    return dashboard


def dashboard_line(dashboard: Dashboard) -> str:
    """How to get there.

    >>> dashboard_line(dashboard)  # doctest: +SKIP
    'dashboard: http://127.0.0.1:8700/?token=vFq1…'
    """
    return f"dashboard: {dashboard.entrance}"


class MaybeDashboard:
    """The dashboard of a process that runs, if there is to be one and can be one."""

    def __init__(
        self,
        app: Headway,
        address: str,
        wanted: Wanted | None,
        health: Callable[[], Health] | None = None,
        patiently: Callable[[Callable[[], Dashboard]], Dashboard] = lambda work: work(),
    ) -> None:
        self._served: Dashboard | None = None
        self.line = ""
        if wanted is None or not app.settings.dashboard_enabled:
            return
        try:
            self._served = patiently(lambda: open_dashboard(app, address, wanted, health))
        except MissingExtra as missing:
            self.line = f"no dashboard: {missing}"
        else:
            self.line = dashboard_line(self._served)

    def stop(self) -> None:
        """End it, if there is one."""
        if self._served is not None:
            self._served.stop()
