"""``headway azolla capture``, ``captures``, ``processed``: notes to be sorted later."""

from typing import Annotated

import typer

from headway.cli.azolla.desk import AsJson, Limit, echo_json, echo_rows, opened
from headway.cli.target import Target
from headway.cli.terminal import plain


def capture(
    target: Target,
    text: Annotated[str, typer.Argument(help="What is not to be forgotten.")],
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "operator",
) -> None:
    """Leave a note to be sorted later; prints its id."""
    with opened(target) as azolla:
        one = azolla.capture(text, source=source)
    typer.echo(one.capture_id)


def captures(
    target: Target,
    everything: Annotated[
        bool, typer.Option("--all", help="Show those that are dealt with too.")
    ] = False,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the notes nobody has dealt with, newest first."""
    with opened(target) as azolla:
        found = azolla.captures(processed=everything, limit=limit)
    if as_json:
        echo_json(found)
        return
    rows = [
        (
            one.capture_id,
            f"{one.created_at:%Y-%m-%d %H:%M}",
            one.status,
            one.source_label,
            one.raw_content,
        )
        for one in found
    ]
    echo_rows(["id", "written (UTC)", "status", "source", "text"], rows, "no captures wait")


def processed(
    target: Target,
    capture_ids: Annotated[list[str], typer.Argument(metavar="CAPTURE...", help="Their ids.")],
) -> None:
    """Note that captures are dealt with."""
    with opened(target) as azolla:
        done = azolla.mark_processed(*capture_ids)
    typer.echo(plain(f"{done} of {len(capture_ids)} were pending and are processed now"))
