"""How a command ends: every error becomes a line and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from headway.cli.signals import Terminated
from headway.cli.terminal import complain, first_line
from headway.cli.usage import explained
from headway.errors import AppNotFound, DefinitionError, HeadwayError, SettingsError
from headway.store.engine import TRANSIENT

FAILURE, USAGE, WORN_OUT, INTERRUPTED = 1, 2, 75, 130
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
        yield
    except typer.Exit:
        raise
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has seen enough; Rich ends the program when it notices first.
        raise typer.Exit(0) from None
    except (KeyboardInterrupt, typer.Abort) as stop:
        code = 0 if isinstance(stop, Terminated) else INTERRUPTED
        raise _failed("stopped", code) from None
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


def help_without_command(context: typer.Context) -> None:
    """Show what a group of commands offers if none of them was named.

    >>> help_without_command(context)  # doctest: +SKIP
    """
    if context.invoked_subcommand is None:
        # Rich prints the help itself; older versions of Typer return it.
        typer.echo(context.get_help(), nl=False)
        raise typer.Exit(USAGE)


def _failed(message: str, code: int) -> typer.Exit:
    complain(message)
    return typer.Exit(code)


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "headway"
    return f"{explained(error)}\ntry: {path} --help"
