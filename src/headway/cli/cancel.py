"""``headway cancel``: what is queued never starts, what runs is asked to stop."""

from typing import Annotated

import typer

from headway.cli.asking import Yes, agreed
from headway.cli.completion import external_ids, group_names
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.output import AsJson, done

Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept with the execution.")]


def cancel(
    external_id: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT", help="The external id of a manifest.", autocompletion=external_ids
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="All of a group instead.", autocompletion=group_names),
    ] = None,
    execution: Annotated[
        int | None, typer.Option(metavar="ID", help="This execution instead.")
    ] = None,
    entry: Annotated[
        int | None, typer.Option(metavar="ID", help="This queue entry instead.")
    ] = None,
    reason: Reason = None,
    yes: Yes = False,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cancel what is queued, pending or running of a manifest, a group, an execution or an entry.

    What has not started never will; what runs is asked to stop. Of a whole group it asks first.

    Example: headway cancel load-42 --reason "wrong day"
    """
    if sum(one is not None for one in (external_id, group, execution, entry)) != 1:
        raise typer.BadParameter("give one external id, or --group, --execution or --entry")
    if group is not None:
        agreed(f"cancel all work of group {group}", yes)
    with deployment(app, database_url) as site:
        reached = site.operator.cancel(
            external_id, group=group, execution=execution, entry=entry, reason=reason
        )
    done(str(reached), reached, as_json=as_json)
