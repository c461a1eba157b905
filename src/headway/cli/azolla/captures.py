"""``headway azolla capture``, ``captures``, ``processed``: notes to be sorted later."""

from typing import Annotated

import typer

from headway.cli.azolla.desk import AsJson, Limit, echo_json, echo_rows, opened
from headway.cli.output import done
from headway.cli.target import Target


def capture(
    target: Target,
    text: Annotated[str, typer.Argument(help="What is not to be forgotten.")],
    source: Annotated[str, typer.Option(help="Where it comes from.")] = "operator",
    as_json: AsJson = False,
) -> None:
    """Leave a note to be sorted later; prints its id.

    Example: headway azolla capture shop:hw "orders of Monday look too low"
    """
    with opened(target) as azolla:
        one = azolla.capture(text, source=source)
    done(one.capture_id, one, as_json=as_json)


def captures(
    target: Target,
    everything: Annotated[
        bool, typer.Option("--all", help="Show those that are dealt with too.")
    ] = False,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the notes nobody has dealt with, newest first.

    Example: headway azolla captures shop:hw --all
    """
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
    as_json: AsJson = False,
) -> None:
    """Note that captures are dealt with.

    Example: headway azolla processed shop:hw capture-3f9a1c2b5d6e
    """
    with opened(target) as azolla:
        count = azolla.mark_processed(*capture_ids)
    told = f"{count} of {len(capture_ids)} were pending and are processed now"
    done(told, {"processed": count, "asked": len(capture_ids)}, as_json=as_json)
