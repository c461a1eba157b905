"""``headway audit``: who did what, and when."""

from typing import Annotated

import typer

from headway.cli.asking import read_moment
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.exits import help_without_command
from headway.cli.listing import SHOWN, After, Everything, Limit, Listing, Paging, Since
from headway.cli.output import AsJson, Column
from headway.domain.views import AuditFilter, AuditRecord

app = typer.Typer(help="See who did what, and when.")

LISTING = Listing[AuditRecord](
    [
        Column("at", lambda one: one.at),
        Column("who", lambda one: one.actor, long=True),
        Column("action", lambda one: one.action),
        Column("what", lambda one: one.subject, long=True),
        Column("detail", lambda one: one.detail, long=True),
    ],
    "nobody has done anything like that",
)


@app.callback(invoke_without_command=True)
def _audit(context: typer.Context) -> None:
    help_without_command(context)


@app.command("list")
def list_audit(
    actor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only by them: cli:alice.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="Only this, as the list calls it.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Only what was done to this.")
    ] = None,
    since: Since = None,
    limit: Limit = SHOWN,
    everything: Everything = False,
    after: After = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List what people and programs have done to this deployment, newest first.

    Example: headway audit list --since 2h
    """
    wanted = AuditFilter(actor, action, subject, read_moment("--since", since))
    with deployment(app, database_url) as site:
        LISTING.show(
            lambda cursor, most: site.history.audit.page(wanted, cursor, most),
            Paging(limit, everything, after),
            now=site.now,
            as_json=as_json,
        )
