"""``headway why``: what keeps a manifest, an execution or an entry from running, and until when."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console

from headway.cli.completion import external_ids
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.output import AsJson, Column, echo_json, show_table
from headway.cli.terminal import cell, console
from headway.domain.due import as_text
from headway.domain.gates import Gate, Stage, Why

ASKED_BY = {Stage.QUEUE: "manager", Stage.DISPATCH: "dispatcher", Stage.START: "worker"}


def why(
    external_id: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT",
            help="The external id of a manifest.",
            autocompletion=external_ids,
        ),
    ] = None,
    execution: Annotated[
        int | None, typer.Option(metavar="ID", help="Ask about this execution instead.")
    ] = None,
    entry: Annotated[
        int | None, typer.Option(metavar="ID", help="Ask about this queue entry instead.")
    ] = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Say why something is not running, and when it can: every gate, passed or not.

    Nothing is written. Without --app the settings are those of the environment.

    Example: headway why load-42
    """
    if sum(one is not None for one in (external_id, execution, entry)) != 1:
        raise typer.BadParameter("give one external id, or --execution, or --entry")
    with deployment(app, database_url) as site:
        found = site.explaining.why(external_id, execution=execution, entry=entry)
        now = site.now
    if as_json:
        echo_json(found.told())
    else:
        _show(console(), found, now)


def _show(output: Console, found: Why, now: datetime) -> None:
    output.print(cell(found.answer, "bold"), soft_wrap=True)
    if not found.gates:
        return
    output.print()
    show_table(output, _columns(*marks(output.encoding)), found.gates, now=now)


def marks(encoding: str) -> tuple[str, str]:
    """The signs of a gate that is passed and of one that is not, as far as an encoding has them.

    >>> marks("utf-8"), marks("ascii")
    (('✓', '✗'), ('ok', 'no'))
    """
    try:
        "✓✗".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "ok", "no"
    return "✓", "✗"


def _columns(passed: str, not_passed: str) -> Sequence[Column[Gate]]:
    return (
        Column("", lambda one: cell(passed, "green") if one.passed else cell(not_passed, "red")),
        Column("gate", lambda one: one.name),
        Column("asked by", lambda one: cell(ASKED_BY[one.stage], "dim")),
        Column("", lambda one: one.sentence, long=True),
        Column("can change", _when, long=True),
    )


def _when(gate: Gate) -> str:
    return as_text(gate.at) if gate.at is not None else gate.until
