"""The ``headway`` command: parses, hands over to one module per command, and words every error.

Exit codes: 0 fine, 1 failure, 2 wrong usage, 3 there is something to do (``plan``: changes, ``db
status``: migrations), 75 worn out (``run``: start it again), 130 Ctrl-C.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Annotated, Any, NoReturn

import typer
from typer.main import get_command

import headway
from headway.cli import (
    apply,
    audit,
    azolla,
    cancel,
    check,
    db,
    dead_letters,
    demo,
    doctor,
    executions,
    groups,
    manifests,
    plan,
    preview,
    queue,
    run,
    servers,
    tokens,
    torture,
    trigger,
    web,
    why,
    worker,
)
from headway.cli.exits import help_without_command, told_in_one_line

DEPLOY, RUN, LOOK, OTHERS, TRY = (
    "Write and deploy",
    "Run",
    "Look and act",
    "Other deployments",
    "Try and test headway itself",
)
COMPLETING = "_HEADWAY_COMPLETE"
HELP = ["--help", "-h"]

app = typer.Typer(
    name="headway",
    help="headway runs many related jobs under control, with a complete record of what happened.",
    epilog="Every command has --help with an example. "
    "Shell completion: headway --install-completion",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
)
database = typer.Typer(help="Bring the database to this version of headway, or ask about it.")
app.command("check", rich_help_panel=DEPLOY)(check.check)
app.command("preview", rich_help_panel=DEPLOY)(preview.preview)
app.command("plan", rich_help_panel=DEPLOY)(plan.plan)
app.command("apply", rich_help_panel=DEPLOY)(apply.apply)
app.add_typer(database, name="db", rich_help_panel=DEPLOY)
app.command("run", rich_help_panel=RUN)(run.run)
app.command("worker", rich_help_panel=RUN)(worker.worker)
app.command("web", rich_help_panel=RUN)(web.web)
app.command("trigger", rich_help_panel=LOOK)(trigger.trigger)
app.command("cancel", rich_help_panel=LOOK)(cancel.cancel)
app.command("why", rich_help_panel=LOOK)(why.why)
app.command("doctor", rich_help_panel=LOOK)(doctor.doctor)
app.add_typer(manifests.app, name="manifests", rich_help_panel=LOOK)
app.add_typer(groups.app, name="groups", rich_help_panel=LOOK)
app.add_typer(executions.app, name="executions", rich_help_panel=LOOK)
app.add_typer(queue.app, name="queue", rich_help_panel=LOOK)
app.add_typer(dead_letters.app, name="dead-letters", rich_help_panel=LOOK)
app.add_typer(servers.app, name="servers", rich_help_panel=LOOK)
app.add_typer(audit.app, name="audit", rich_help_panel=LOOK)
app.add_typer(tokens.app, name="tokens", rich_help_panel=LOOK)
app.add_typer(azolla.app, name="azolla", rich_help_panel=OTHERS)
app.command("demo", rich_help_panel=TRY)(demo.demo)
app.command("torture", rich_help_panel=TRY)(torture.torture)
database.command("migrate")(db.migrate)
database.command("status")(db.status)


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
            command = _command()
            if COMPLETING in os.environ:
                command.main([], "headway")
            with command.make_context("headway", arguments) as context:
                command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _command() -> Any:
    """The commands as Typer builds them; what installs completion is used once and not listed."""
    command: Any = get_command(app)
    for parameter in command.params:
        if parameter.name in ("install_completion", "show_completion"):
            parameter.hidden = True
    _show_no_types(command)
    return command


def _show_no_types(command: Any) -> None:
    """Newer versions of Typer would write ``--json <bool>`` and ``MODULE:APP <str>``."""
    helping = command.get_help_option(typer.Context(command, help_option_names=HELP))
    for parameter in (*command.params, helping):
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
        elif parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
            parameter.get_usage_pieces = partial(_usage_piece, parameter)
    for below in getattr(command, "commands", {}).values():
        _show_no_types(below)


def _usage_piece(argument: Any, _: object) -> list[str]:
    name = argument.metavar or argument.name.upper()
    return [name if argument.required else f"[{name}]"]


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
