"""``headway trigger``: a run that somebody asks for."""

from typing import Annotated

import typer

from headway.cli.asking import GivenInput, read_input, read_span
from headway.cli.completion import external_ids
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.output import AsJson, done
from headway.definition.runtime import NOT_GIVEN


def trigger(
    external_id: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="The external id of a manifest.", autocompletion=external_ids
        ),
    ],
    given: GivenInput = None,
    delay: Annotated[
        str | None, typer.Option(metavar="TIME", help="Not before so much time: 90s, 1h30m.")
    ] = None,
    max_attempts: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often it is tried in all.")
    ] = 1,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Queue a run of a manifest, now or later, with its own input or another one.

    A running headway starts it. To see what keeps it from starting: headway why --entry ID.

    Example: headway trigger load-42 --delay 10m
    """
    input, later = read_input(given), read_span("--delay", delay)
    with deployment(app, database_url) as site:
        if input is not NOT_GIVEN:
            site.with_code("--input")
        entry = site.operator.trigger(external_id, input, delay=later, max_attempts=max_attempts)
    done(
        f"queued {external_id} as entry {entry}",
        {"external_id": external_id, "entry": entry},
        as_json=as_json,
    )
