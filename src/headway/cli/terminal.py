"""What is written to the terminal, with everything in it that a terminal would obey escaped."""

import sys

import typer
from rich.console import Console
from rich.text import Text

from headway.domain.text import describe_exception, for_terminal

MESSAGE_LINES = 3
LINE_LIMIT = 500
# As wide as need be: a line that is broken is no use to grep.
WIDTH_OF_PIPES = 10_000


def console() -> Console:
    """Rich's console for stdout, wide enough for tables when there is no terminal.

    >>> console().print("fine")  # doctest: +SKIP
    fine
    """
    width = None if sys.stdout is not None and sys.stdout.isatty() else WIDTH_OF_PIPES
    return Console(width=width, highlight=False, markup=False, emoji=False)


def plain(value: object, limit: int = LINE_LIMIT) -> str:
    r"""*value* on one line without control characters.

    >>> plain("\x1b[31mred\n")
    '\\x1b[31mred '
    """
    return for_terminal(str(value), limit).replace("\n", " ").replace("\t", " ")


def cell(value: object, style: str = "") -> Text:
    """*value* as it is, never read as markup.

    >>> cell("[bold]").plain
    '[bold]'
    """
    return Text(plain(value), style=style, overflow="fold")


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, or its type if it has none.

    >>> first_line(ValueError("no rows"))
    'no rows'
    """
    kind, message, _ = describe_exception(error)
    lines = message.strip().splitlines()
    return plain(lines[0] if lines else kind)


def say(message: str) -> None:
    """Write one line to stderr; stdout belongs to the user's own code.

    >>> say("Ctrl-C stops")  # doctest: +SKIP
    """
    try:
        typer.echo(plain(message, 2 * LINE_LIMIT), err=True)
    except OSError:
        return  # nobody reads it


def complain(message: str) -> None:
    """Say what went wrong, in at most three lines.

    >>> complain("no module 'hello' here")  # doctest: +SKIP
    headway: no module 'hello' here
    """
    lines = [line for line in message.splitlines() if line.strip()] or ["failed"]
    if len(lines) > MESSAGE_LINES:
        kept = MESSAGE_LINES - 1
        lines = [*lines[:kept], f"and {len(lines) - kept} more"]
    for line in ("headway: " + lines[0], *lines[1:]):
        say(line)
