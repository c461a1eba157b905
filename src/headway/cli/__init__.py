"""The ``headway`` command: parses, hands over to one module per command, and words every error.

Exit codes: 0 fine, 1 failure, 2 wrong usage, 3 there is something to do (``plan``: changes, ``db
status``: migrations), 130 Ctrl-C.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Annotated, Any, NoReturn

import typer
from typer.main import get_command

import headway
from headway.cli import apply, check, db, demo, doctor, plan, preview, run, torture
from headway.cli.signals import Terminated
from headway.cli.terminal import complain, first_line
from headway.errors import AppNotFound, DefinitionError, HeadwayError, SettingsError
from headway.store.engine import TRANSIENT

FAILURE, USAGE, INTERRUPTED = 1, 2, 130
USAGE_ERRORS = (AppNotFound, DefinitionError, SettingsError)

# Typer brings its own copy of click or uses an installed one, depending on its version; either
# way this is the base of everything that is wrong with a command line.
CommandLineError: Any = typer.BadParameter.__mro__[2]

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
    _help_without_command(context)


@database.callback(invoke_without_command=True)
def _database(context: typer.Context) -> None:
    _help_without_command(context)


def _help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        # Rich prints the help itself; older versions of Typer return it.
        typer.echo(context.get_help(), nl=False)
        raise typer.Exit(USAGE)


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
        with _told_in_one_line():
            command = get_command(app)
            with command.make_context("headway", arguments) as context:
                command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Turn every error into a line on stderr and an exit code, never a traceback."""
    try:
        yield
    except typer.Exit:
        raise
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has seen enough; Rich ends the program when it notices first.
        raise typer.Exit(0) from None
    except (KeyboardInterrupt, typer.Abort) as stop:
        code = 0 if isinstance(stop, Terminated) else INTERRUPTED
        raise _failed("stopped before it had started", code) from None
    except CommandLineError as error:
        raise _failed(_usage(error), error.exit_code) from None
    except HeadwayError as error:
        code = USAGE if isinstance(error, USAGE_ERRORS) else FAILURE
        raise _failed(str(error), code) from None
    except TRANSIENT as error:
        raise _failed(f"the database failed: {first_line(error)}", FAILURE) from None
    except OSError as error:
        raise _failed(first_line(error), FAILURE) from None
    except Exception as error:
        told = f"unexpected {type(error).__name__}: {first_line(error)}; please report this"
        raise _failed(told, FAILURE) from None


def _failed(message: str, code: int) -> typer.Exit:
    complain(message)
    return typer.Exit(code)


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "headway"
    message = error.format_message().replace("Value error, ", "")
    return f"{message}\ntry: {path} --help"


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
