"""``headway executions``: what ran, how one went, stopping it and running it again."""

import json
from datetime import timedelta
from typing import Annotated

import typer

from headway.cli.asking import GivenInput, read_input, read_moment
from headway.cli.cancel import Reason
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.execution_text import show_execution
from headway.cli.exits import FAILURE, help_without_command
from headway.cli.following import follow_all, follow_one
from headway.cli.listing import (
    SHOWN,
    After,
    Everything,
    Limit,
    Listing,
    OfGroup,
    OfManifest,
    OfSource,
    OfWorkflow,
    Paging,
    Since,
)
from headway.cli.output import AsJson, Column, each_done, echo_json, told_input, with_values
from headway.cli.terminal import console
from headway.definition.runtime import NOT_GIVEN
from headway.domain.execution import ExecutionState
from headway.domain.views import ExecutionFilter
from headway.domain.views import ExecutionOverview as Overview

app = typer.Typer(help="List and show executions, follow them, cancel them, run them again.")

States = Annotated[
    list[ExecutionState] | None,
    typer.Option(
        "--state", metavar="STATE", help=f"Only in this state: {', '.join(ExecutionState)}."
    ),
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Not newer than that.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on and print what happens; Ctrl-C ends it.")
]
ExecutionId = Annotated[int, typer.Argument(metavar="EXECUTION", help="Its id.")]
ExecutionIds = Annotated[list[int], typer.Argument(metavar="EXECUTION...", help="Their ids.")]


def _took(one: Overview) -> timedelta | None:
    return None if one.seconds is None else timedelta(seconds=one.seconds)


LISTING = Listing[Overview](
    [
        Column("id", lambda one: one.id),
        Column("state", lambda one: one.state),
        Column("manifest", lambda one: one.external_id, long=True),
        Column("workflow", lambda one: one.workflow, long=True, spare=True),
        Column("group", lambda one: one.group_name, long=True, spare=True),
        Column("source", lambda one: one.source, spare=True),
        Column("dispatched", lambda one: one.dispatched_at),
        Column("took", _took),
        Column("what happened", lambda one: one.failure or one.progress_note, long=True),
    ],
    "nothing like that has run; what waits: headway queue list",
)


@app.callback(invoke_without_command=True)
def _executions(context: typer.Context) -> None:
    help_without_command(context)


@app.command("list")
def list_executions(
    manifest: OfManifest = None,
    states: States = None,
    group: OfGroup = None,
    workflow: OfWorkflow = None,
    source: OfSource = None,
    since: Since = None,
    until: Until = None,
    follow: Follow = False,
    limit: Limit = SHOWN,
    everything: Everything = False,
    after: After = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List what ran and what runs, newest first.

    Example: headway executions list load-42 --state failed --since 1d
    """
    if follow and (everything or after):
        raise typer.BadParameter("--follow goes with --limit, not with --all or --after")
    wanted = ExecutionFilter(
        states=states or (),
        manifest=manifest,
        group=group,
        workflow=workflow,
        source=source,
        since=read_moment("--since", since),
        until=read_moment("--until", until),
    )
    with deployment(app, database_url) as site:
        if follow:
            follow_all(site.history, wanted, limit, as_json=as_json)
        LISTING.show(
            lambda cursor, most: site.history.executions.page(wanted, cursor, most),
            Paging(limit, everything, after),
            now=site.now,
            as_json=as_json,
        )


@app.command("show")
def show(
    execution: ExecutionId,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Wait for its end; exits 1 unless it completes."),
    ] = False,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show how an execution went: times, steps, input, output, and the traceback if it failed.

    Example: headway executions show 17 --follow
    """
    with deployment(app, database_url) as site:
        if follow:
            follow_one(site.history, execution)
        found, now = site.history.executions.detail(execution), site.now
        input = site.input_of(found.execution.workflow, found.execution.input)
    output = found.execution.output and json.loads(found.execution.output)
    if as_json:
        echo_json(with_values(found, {"execution.input": input, "execution.output": output}))
    else:
        show_execution(console(), found, told_input(input), now)
    if follow and found.execution.state is not ExecutionState.COMPLETED:
        raise typer.Exit(FAILURE)


@app.command("cancel")
def cancel_execution(
    executions: ExecutionIds,
    reason: Reason = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Cancel executions: a pending one never starts, a running one is asked to stop.

    Example: headway executions cancel 17 --reason "wrong day"
    """
    with deployment(app, database_url) as site, each_done(as_json=as_json) as told:
        for one in executions:
            reached = site.operator.cancel(execution=one, reason=reason)
            told(f"execution {one}: {reached}", {"execution": one, **vars(reached)})


@app.command("rerun")
def rerun(
    executions: ExecutionIds,
    given: GivenInput = None,
    max_attempts: Annotated[
        int, typer.Option(metavar="N", min=1, help="How often it is tried in all.")
    ] = 1,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Queue what executions ran once more, with the same input or another one.

    Example: headway executions rerun 17
    """
    input = read_input(given)
    with deployment(app, database_url) as site, each_done(as_json=as_json) as told:
        if input is not NOT_GIVEN:
            site.with_code("--input")
        for one in executions:
            entry = site.operator.rerun(one, input, max_attempts=max_attempts)
            facts = {"execution": one, "entry": entry}
            told(f"queued execution {one} again as entry {entry}", facts)
