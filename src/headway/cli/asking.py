"""Asking before something is done that cannot be undone at once, and reading what was given."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.definition.runtime import NOT_GIVEN
from headway.domain.setting_values import parse_duration
from headway.domain.text import shown
from headway.errors import HeadwayError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
GivenInput = Annotated[
    str | None,
    typer.Option(
        "--input",
        "-i",
        metavar="JSON",
        help="Another input: JSON, @file that holds it, or - for stdin. Needs --app.",
    ),
]


def agreed(what: str, yes: bool) -> None:
    """Go on if *what* was agreed to: by --yes, or by the person who is asked.

    >>> agreed("requeue 2 dead letters", yes=True)
    """
    if yes:
        return
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise typer.BadParameter(f"nobody can be asked here; to {what}, add --yes")
    if not typer.confirm(f"{what}?", err=True):
        raise HeadwayError("nothing was done")


def read_input(given: str | None) -> Any:
    """The value that ``--input`` stands for.

    >>> read_input('{"day": 3}')
    {'day': 3}
    """
    if given is None:
        return NOT_GIVEN
    text = _text_of(given)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        # The text may hold secrets, and which parts do is known of JSON only.
        told = f"{error}; for example --input '{{\"day\": 3}}', or --input '\"text\"'"
        raise typer.BadParameter(f"--input is not JSON: {told}") from None


def _text_of(given: str) -> str:
    try:
        if given == "-":
            if sys.stdin is None or sys.stdin.closed:
                raise typer.BadParameter("--input -: there is nothing on stdin")
            return sys.stdin.read()
        return Path(given[1:]).read_text("utf-8") if given.startswith("@") else given
    except OSError as error:
        raise typer.BadParameter(f"--input {given}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"--input {given}: is not UTF-8 text") from None


def read_span(option: str, given: str | None) -> timedelta | None:
    """A duration as people write it.

    >>> read_span("--delay", "1h30m")
    datetime.timedelta(seconds=5400)
    """
    if given is None:
        return None
    try:
        return parse_duration(given)
    except ValueError:
        raise typer.BadParameter(
            f"{option} = {shown(given)}: must be a duration; for example {option} 90s or 1h30m"
        ) from None


def read_moment(option: str, given: str | None) -> datetime | None:
    """A moment: so long ago, or a date with or without a time, in UTC unless it says otherwise.

    >>> read_moment("--since", "2026-01-05")
    datetime.datetime(2026, 1, 5, 0, 0, tzinfo=datetime.timezone.utc)
    """
    if given is None:
        return None
    try:
        return datetime.now(UTC) - parse_duration(given)
    except (ValueError, OverflowError):
        pass
    try:
        read = datetime.fromisoformat(given)
    except ValueError:
        raise typer.BadParameter(
            f"{option} = {shown(given)}: must be a duration back from now or a date; "
            f"for example {option} 2h or {option} 2026-01-05T13:00"
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
