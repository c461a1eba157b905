"""The ``headway`` command: parses, hands over to one module per command, and words every error.

Exit codes: 0 fine, 1 failure, 2 wrong usage, 3 there is something to do (``plan``: changes, ``db
status``: migrations), 75 worn out (``run``: start it again), 130 Ctrl-C.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Annotated, NoReturn

import typer
from typer.main import get_command

import headway
from headway.cli import apply, azolla, check, db, demo, doctor, plan, preview, run, torture
from headway.cli.exits import help_without_command, told_in_one_line

app = typer.Typer(
    name="headway",
    help="headway runs many related jobs under control, with a complete record of what happened.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
database = typer.Typer(help="Bring the database to this version of headway, or ask about it.")
app.command("run")(run.run)
app.command("check")(check.check)
app.command("plan")(plan.plan)
app.command("apply")(apply.apply)
app.command("preview")(preview.preview)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.command("torture")(torture.torture)
app.add_typer(database, name="db")
database.command("migrate")(db.migrate)
database.command("status")(db.status)
app.add_typer(azolla.app, name="azolla")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if version:
        typer.echo(f"headway {headway.__version__}")
        raise typer.Exit
    help_without_command(context)


@database.callback(invoke_without_command=True)
def _database(context: typer.Context) -> None:
    help_without_command(context)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line *arguments* (default: this process's) and exit.

    >>> main(["--version"])  # doctest: +SKIP
    headway 0.1.0
    """
    for stream in (sys.stdout, sys.stderr):
        _tolerate_any_text(stream)
    code = _outcome(list(sys.argv[1:] if arguments is None else arguments))
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    sys.exit(code)


def _outcome(arguments: list[str]) -> int:
    try:
        with told_in_one_line():
            command = get_command(app)
            with command.make_context("headway", arguments) as context:
                command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _tolerate_any_text(stream: IO[str] | None) -> None:
    """A name that the terminal's encoding lacks is shown escaped instead of ending the command."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _flush(stream: IO[str] | None) -> None:
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        # The reader is gone. Without this the interpreter would complain about it once more.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
