"""``headway manifests``: which there are, how one stands, and its switch."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console

from headway.cli.completion import external_ids
from headway.cli.deployment import App, DatabaseUrl, Deployment, deployment
from headway.cli.exits import help_without_command
from headway.cli.listing import (
    SHOWN,
    After,
    Everything,
    Limit,
    Listing,
    OfGroup,
    OfWorkflow,
    Paging,
)
from headway.cli.output import (
    AsJson,
    Column,
    done,
    echo_json,
    show_fields,
    show_table,
    told_input,
    with_values,
)
from headway.cli.terminal import cell, console
from headway.domain.views import EdgeView, ExecutionOverview, ManifestDetail, ManifestFilter
from headway.domain.views import ManifestOverview as Overview

app = typer.Typer(help="List and show manifests; switch them on and off.")

ExternalId = Annotated[
    str, typer.Argument(metavar="WHAT", help="Its external id.", autocompletion=external_ids)
]
ExternalIds = Annotated[
    list[str],
    typer.Argument(metavar="WHAT...", help="Their external ids.", autocompletion=external_ids),
]

LISTING = Listing[Overview](
    [
        Column("external id", lambda one: one.external_id, long=True),
        Column("state", lambda one: one.state),
        Column("group", lambda one: one.group_name, long=True, spare=True),
        Column("workflow", lambda one: one.workflow, long=True, spare=True),
        Column("schedule", lambda one: one.schedule, long=True),
        Column("last success", lambda one: one.last_success_at),
    ],
    "there is no such manifest; headway apply MODULE:APP adds what an application declares",
)
RUNS = (
    Column[ExecutionOverview]("run", lambda one: one.id),
    Column[ExecutionOverview]("state", lambda one: one.state),
    Column[ExecutionOverview]("started", lambda one: one.started_at),
    Column[ExecutionOverview]("failure", lambda one: one.failure, long=True),
)
EDGES = (
    Column[EdgeView]("external id", lambda one: one.external_id or "removed", long=True),
    Column[EdgeView]("state", lambda one: one.state),
    Column[EdgeView]("last success", lambda one: one.last_success_at),
)


@app.callback(invoke_without_command=True)
def _manifests(context: typer.Context) -> None:
    help_without_command(context)


@app.command("list")
def list_manifests(
    beginning: Annotated[
        str,
        typer.Argument(
            metavar="BEGINNING",
            help="How their external ids begin.",
            autocompletion=external_ids,
            show_default=False,
        ),
    ] = "",
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Find it anywhere in the external id.")
    ] = False,
    group: OfGroup = None,
    workflow: OfWorkflow = None,
    enabled: Annotated[
        bool | None,
        typer.Option("--enabled/--disabled", help="Only those switched on, or off."),
    ] = None,
    dead_lettered: Annotated[
        bool, typer.Option("--dead-lettered", help="Only those that wait for a person.")
    ] = False,
    limit: Limit = SHOWN,
    everything: Everything = False,
    after: After = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List manifests by external id, and how each stands.

    Example: headway manifests list load- --group nightly
    """
    wanted = ManifestFilter(
        search=beginning,
        anywhere=anywhere,
        group=group,
        workflow=workflow,
        enabled=enabled,
        dead_lettered=dead_lettered,
    )
    with deployment(app, database_url) as site:
        LISTING.show(
            lambda cursor, most: site.history.manifests.page(wanted, cursor, most),
            Paging(limit, everything, after),
            now=site.now,
            as_json=as_json,
        )


@app.command("show")
def show_manifest(
    external_id: ExternalId,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show everything about a manifest: definition, next runs, parents, last executions.

    Example: headway manifests show load-42
    """
    with deployment(app, database_url) as site:
        found, now = site.history.manifests.detail(external_id), site.now
        input = site.input_of(found.overview.workflow, found.definition.input)
    if as_json:
        echo_json(with_values(found, {"definition.input": input}))
    else:
        _show(console(), found, told_input(input), now)


@app.command("enable")
def enable(
    external_ids: ExternalIds,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Switch manifests on.

    Example: headway manifests enable load-42
    """
    _switch(app, database_url, external_ids, lambda site: site.operator.enable, "enabled", as_json)


@app.command("disable")
def disable(
    external_ids: ExternalIds,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Switch manifests off until somebody enables them: nothing more is queued, what is waits.

    Example: headway manifests disable load-42 load-43
    """
    _switch(
        app, database_url, external_ids, lambda site: site.operator.disable, "disabled", as_json
    )


def _switch(
    app: str | None,
    database_url: str | None,
    names: list[str],
    verb: Callable[[Deployment], Callable[[str], None]],
    state: str,
    as_json: bool,
) -> None:
    with deployment(app, database_url) as site:
        for name in names:
            verb(site)(name)
    done(f"{state} {', '.join(names)}", {state: names}, as_json=as_json)


def _show(output: Console, found: ManifestDetail, input: str, now: datetime) -> None:
    show_fields(output, _fields(found, input), now=now)
    output.print()
    output.print(cell("next runs", "bold"))
    show_fields(output, ((" ", run.at) for run in found.next_runs), now=now)
    if not found.next_runs:
        output.print(cell(f"  none by the clock; headway why {found.overview.external_id}"))
    for title, edges, count in (
        ("runs after", found.parents, found.parent_count),
        ("before", found.children, found.child_count),
    ):
        if edges:
            show_table(output, EDGES, edges, now=now, title=f"{title} ({count})")
    if found.executions:
        show_table(output, RUNS, found.executions, now=now, title="last executions")


def _fields(found: ManifestDetail, input: str) -> Iterator[tuple[str, object]]:
    one, definition = found.overview, found.definition
    yield "external id", one.external_id
    yield "state", one.state
    yield "enabled", one.enabled
    yield "group", one.group_name if one.group_enabled else f"{one.group_name} (disabled)"
    yield "workflow", one.workflow
    yield "schedule", one.schedule
    yield "excluded", "; ".join(definition.exclusions)
    yield "input", input
    yield "priority", definition.priority
    yield "timeout", definition.timeout
    yield "retries", definition.max_retries
    yield "last success", one.last_success_at
    yield "declared by", definition.owner
    if found.dead_letter is not None:
        letter = found.dead_letter
        yield "dead letter", f"{letter.id}: {letter.reason}"
    for entry in found.entries:
        yield "queued", f"entry {entry.id} by {entry.source}"
    yield "trouble", found.trouble
