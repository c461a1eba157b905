"""``headway queue``: what waits to be dispatched."""

from typing import Annotated

import typer

from headway.cli.cancel import Reason
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.exits import help_without_command
from headway.cli.listing import (
    SHOWN,
    After,
    Everything,
    Limit,
    Listing,
    OfGroup,
    OfManifest,
    OfSource,
    Paging,
)
from headway.cli.output import AsJson, Column, each_done
from headway.domain.views import EntryOverview as Overview
from headway.domain.views import QueueFilter

app = typer.Typer(help="See what waits to be dispatched, and take something out.")


def _attempt(one: Overview) -> str:
    """A manifest's own retries are counted without an end: its definition knows how many."""
    number = one.attempts + 1
    return f"{number} of {one.max_attempts}" if one.max_attempts > 1 else str(number)


LISTING = Listing[Overview](
    [
        Column("entry", lambda one: one.id),
        Column("manifest", lambda one: one.external_id, long=True),
        Column("workflow", lambda one: one.workflow, long=True, spare=True),
        Column("group", lambda one: one.group_name, long=True, spare=True),
        Column("source", lambda one: one.source, spare=True),
        Column("priority", lambda one: one.priority, spare=True),
        Column("queued", lambda one: one.created_at),
        Column("not before", lambda one: one.scheduled_at if one.delayed else None),
        Column("attempt", _attempt),
    ],
    "nothing waits",
)


@app.callback(invoke_without_command=True)
def _queue(context: typer.Context) -> None:
    help_without_command(context)


@app.command("list")
def list_queue(
    manifest: OfManifest = None,
    group: OfGroup = None,
    source: OfSource = None,
    limit: Limit = SHOWN,
    everything: Everything = False,
    after: After = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List what waits, in the order in which it is dispatched.

    What keeps an entry waiting: headway why --entry ID.

    Example: headway queue list --group nightly
    """
    wanted = QueueFilter(group, source, manifest)
    with deployment(app, database_url) as site:
        LISTING.show(
            lambda cursor, most: site.history.queue.page(wanted, cursor, most),
            Paging(limit, everything, after),
            now=site.now,
            as_json=as_json,
        )


@app.command("cancel")
def cancel_entry(
    entries: Annotated[list[int], typer.Argument(metavar="ENTRY...", help="Their ids.")],
    reason: Reason = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Take entries out of the queue; one that runs already is asked to stop.

    Example: headway queue cancel 7 8
    """
    with deployment(app, database_url) as site, each_done(as_json=as_json) as told:
        for entry in entries:
            reached = site.operator.cancel(entry=entry, reason=reason)
            told(f"entry {entry}: {reached}", {"entry": entry, **vars(reached)})
