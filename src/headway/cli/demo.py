"""``headway demo``: a small ETL to watch."""

from pathlib import Path
from typing import Annotated

import typer

from headway.cli.dashboard import MaybeDashboard, Port, Wanted
from headway.cli.signals import StopSignals
from headway.cli.terminal import console
from headway.demo.federation.show import show_federation
from headway.demo.show import show
from headway.extras import require


def demo(
    seconds: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", min=0.1, help="End by itself after this time."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep database and files here; a used folder is continued. "
            "Default: a temporary one, deleted at the end.",
            file_okay=False,
        ),
    ] = None,
    port: Port = None,
    federation: Annotated[
        bool,
        typer.Option(
            "--federation",
            help="Start three deployments on loopback, let jobs fail in them, and print one page "
            "about all.",
        ),
    ] = False,
) -> None:
    """Watch a small ETL run on SQLite, live in the terminal and on its dashboard.

    Ctrl-C ends it with a summary.

    Example: headway demo --for 20
    """
    signals = StopSignals()
    if federation:
        require("federation")
        show_federation(directory, console())
        return
    signals.install()
    show(
        directory,
        seconds,
        signals.stops,
        lambda app, health: MaybeDashboard(app, app.database_url, Wanted(port=port), health),
    )
