"""How a command ends: every error becomes a line and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from headway.cli.terminal import complain, first_line
from headway.cli.usage import explained
from headway.domain.text import shown, storage_rule
from headway.errors import (
    AppNotFound,
    DatabaseLost,
    DefinitionError,
    HeadwayError,
    SettingsError,
)
from headway_command.stopping import INTERRUPTED, exit_code, noted

FAILURE, USAGE, DATABASE_LOST, WORN_OUT = 1, 2, 74, 75
USAGE_ERRORS = (AppNotFound, DefinitionError, SettingsError)

# Typer brings its own copy of click or uses an installed one, depending on its version; either
# way this is the base of everything that is wrong with a command line.
CommandLineError: Any = typer.BadParameter.__mro__[2]


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn every error into a line on stderr and an exit code, never a traceback.

    >>> with told_in_one_line():  # doctest: +SKIP
    ...     raise HeadwayError("no rows")
    headway: no rows
    """
    try:
        with _stop_first():
            yield
    except typer.Exit:
        raise
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has seen enough; Rich ends the program when it notices first.
        raise typer.Exit(0) from None
    except (KeyboardInterrupt, typer.Abort):
        raise _failed("stopped", INTERRUPTED) from None
    except CommandLineError as error:
        raise _failed(_usage(error), error.exit_code) from None
    except HeadwayError as error:
        raise _failed(str(error), _code_of(error)) from None
    except UnicodeEncodeError as error:
        # A terminal hands over bytes that are not UTF-8 as lone surrogates.
        rule = storage_rule(str(error.object)) or "cannot be written as UTF-8"
        told = f"argument = {shown(error.object)}: {rule}; for example 'extract-users'"
        raise _failed(told, USAGE) from None
    except OSError as error:
        raise _failed(first_line(error), FAILURE) from None
    except Exception as error:
        told = f"unexpected {type(error).__name__}: {first_line(error)}; please report this"
        raise _failed(told, FAILURE) from None


@contextmanager
def _stop_first() -> Iterator[None]:
    """Take whatever ends the start after a stop signal as the stop.

    The signal interrupts the start anywhere, and what comes of that need not be its exception:
    PostgreSQL cancels the statement under way, and the next one may fail of it.
    """
    try:
        yield
    except typer.Exit:
        raise
    except BaseException:
        if (number := noted()) is None:
            raise
        raise _failed("stopped", exit_code(number)) from None


def help_without_command(context: typer.Context) -> None:
    """Show what a group of commands offers if none of them was named.

    >>> help_without_command(context)  # doctest: +SKIP
    """
    if context.invoked_subcommand is None:
        # Rich prints the help itself; older versions of Typer return it.
        typer.echo(context.get_help(), nl=False)
        raise typer.Exit(USAGE)


def _code_of(error: HeadwayError) -> int:
    if isinstance(error, DatabaseLost):
        return DATABASE_LOST
    return USAGE if isinstance(error, USAGE_ERRORS) else FAILURE


def _failed(message: str, code: int) -> typer.Exit:
    complain(message)
    return typer.Exit(code)


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "headway"
    return f"{explained(error)}\ntry: {path} --help"
