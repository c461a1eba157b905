"""``headway run``: one headway process, or several, until somebody stops it."""

from typing import Annotated

import typer

from headway.cli.database import database_option
from headway.cli.processes import supervise
from headway.cli.serving import Running, serve
from headway.cli.signals import StopSignals
from headway.cli.target import Target
from headway.wakeups import EVERY_ROLE, Role

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
    processes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Run so many processes like this.",
            callback=lambda number: _at_least_one(number),
        ),
    ] = 1,
    database_url: DatabaseUrl = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Log warnings and errors only.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every event.")] = False,
) -> None:
    """Run an application: its manager, dispatcher and workers.

    The first SIGTERM or Ctrl-C lets running jobs finish, the second hands them back to the queue.
    """
    if quiet and verbose:
        raise typer.BadParameter("--quiet and --verbose exclude each other")
    running = Running(target, _roles(only), database_url, quiet, verbose, processes)
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
