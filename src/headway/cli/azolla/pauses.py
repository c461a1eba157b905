"""``headway azolla pauses``: why work rests, and what to do about it."""

from typing import Annotated

import typer

from headway.cli.azolla.desk import AsJson, Limit, echo_json, echo_rows, opened
from headway.cli.target import Target


def pauses(
    target: Target,
    reason: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="run_complete, gate_failed or budget_exhausted."),
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List why work rests and what to do about it, newest first.

    Example: headway azolla pauses shop:hw --reason gate_failed
    """
    with opened(target) as azolla:
        found = azolla.pause_states(reason=reason, limit=limit)
    if as_json:
        echo_json(found)
        return
    rows = [
        (f"{one.created_at:%Y-%m-%d %H:%M}" if first else "", one.reason if first else "", action)
        for one in found
        for first, action in zip((True, False, False), one.prioritized_actions, strict=False)
    ]
    echo_rows(["since (UTC)", "reason", "what to do"], rows, "nothing rests")
