"""``headway servers``: the processes that run, and how fresh their leases are."""

import typer

from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.exits import help_without_command
from headway.cli.listing import Listing, Paging
from headway.cli.output import AsJson, Column
from headway.domain.paging import Page
from headway.domain.views import ServerOverview as Overview

app = typer.Typer(help="See which processes run, and how fresh their leases are.")


def _health(server: Overview) -> str:
    if not server.alive:
        return "lost"
    return "late" if server.late else "alive"


LISTING = Listing[Overview](
    [
        Column("server", lambda one: one.id, long=True),
        Column("host", lambda one: f"{one.host}:{one.pid}", spare=True),
        Column("lease", _health),
        Column("roles", lambda one: ", ".join(one.roles), long=True),
        Column("running", lambda one: f"{one.running} of {one.slots}"),
        Column("workflows", lambda one: len(one.workflows), spare=True),
        Column("started", lambda one: one.started_at, spare=True),
        Column("last beat", lambda one: one.renewed_at),
    ],
    "no process runs; start one: headway run MODULE:APP",
)


@app.callback(invoke_without_command=True)
def _servers(context: typer.Context) -> None:
    help_without_command(context)


@app.command("list")
def list_servers(
    app: App = None, database_url: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """List the processes of this deployment, and how much of what they may run runs.

    Example: headway servers list
    """
    with deployment(app, database_url) as site:
        found, now = Page(tuple(site.history.servers.all())), site.now
    LISTING.show(lambda cursor, most: found, Paging(1, True, None), now=now, as_json=as_json)
