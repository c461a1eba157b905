"""``headway run``: one headway process, or several, until somebody stops it."""

from typing import Annotated

import typer

from headway.cli.dashboard import Host, Port, Wanted
from headway.cli.database import database_option
from headway.cli.processes import supervise
from headway.cli.serving import Running, serve
from headway.cli.signals import StopSignals
from headway.cli.target import Target
from headway.wakeups import EVERY_ROLE, Role

DatabaseUrl = Annotated[
    str | None, database_option("The database, instead of the one the application names.")
]
Processes = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Run so many processes like this.",
        callback=lambda number: _at_least_one(number),
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every event.")]


def run(
    target: Target,
    only: Annotated[
        list[Role] | None,
        typer.Option(
            metavar="ROLE",
            help="Run one role: manager, dispatcher or worker. Others run in their own processes.",
        ),
    ] = None,
    processes: Processes = 1,
    database_url: DatabaseUrl = None,
    host: Host = None,
    port: Port = None,
    no_dashboard: Annotated[
        bool, typer.Option("--no-dashboard", help="Serve neither dashboard nor REST API.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run an application: its manager, dispatcher and workers, and its dashboard.

    The first SIGTERM or Ctrl-C lets running jobs finish, the second hands them back to the queue.

    Example: headway run shop:hw
    """
    if quiet and verbose:
        raise typer.BadParameter("--quiet and --verbose exclude each other")
    roles = _roles(only)
    # Of the processes that share the roles, the one with the manager has the dashboard.
    wanted = None if no_dashboard or Role.MANAGER not in roles else Wanted(host, port)
    running = Running(target, roles, database_url, quiet, verbose, processes, wanted)
    signals = StopSignals()
    code = supervise(running, signals) if processes > 1 else serve(running, signals)
    raise typer.Exit(code)


def _at_least_one(number: int) -> int:
    if number < 1:
        raise typer.BadParameter(f"{number} is not at least 1; for example --processes 4")
    return number


def _roles(only: list[Role] | None) -> frozenset[Role]:
    roles = frozenset(only or EVERY_ROLE)
    if only and len(roles) > 1:
        raise typer.BadParameter(
            "one role per process; without it, all of them run in this one", param_hint="'--only'"
        )
    return roles
