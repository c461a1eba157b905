"""``headway dead-letters``: what failed too often, and what to do about it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console

from headway.cli.asking import GivenInput, Yes, read_input
from headway.cli.deployment import App, DatabaseUrl, deployment
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
    echo_json,
    show_fields,
    show_table,
    told_input,
    with_values,
)
from headway.cli.resolving import Verbs, resolve, wanted
from headway.cli.terminal import cell, console
from headway.definition.interventions import AS_IT_FAILED
from headway.definition.runtime import NOT_GIVEN
from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.views import DeadLetterDetail, DeadLetterFilter, ExecutionOverview
from headway.domain.views import DeadLetterOverview as Overview

app = typer.Typer(help="See what failed too often; run it again, or leave it at that.")

Letters = Annotated[
    list[int] | None, typer.Argument(metavar="LETTER...", help="Their ids.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Every one that waits.")]
Note = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept with the dead letter.")]

LISTING = Listing[Overview](
    [
        Column("id", lambda one: one.id),
        Column("manifest", lambda one: one.external_id, long=True),
        Column("group", lambda one: one.group_name, long=True, spare=True),
        Column("workflow", lambda one: one.workflow, long=True, spare=True),
        Column("since", lambda one: one.dead_lettered_at),
        Column("reason", lambda one: one.reason, long=True),
    ],
    "no dead letter waits",
)
WITH_RESOLVED = Listing[Overview](
    [*LISTING.columns, Column("resolved", lambda one: one.resolved_at)], "there is no dead letter"
)
RUNS = (
    Column[ExecutionOverview]("execution", lambda one: one.id),
    Column[ExecutionOverview]("state", lambda one: one.state),
    Column[ExecutionOverview]("started", lambda one: one.started_at),
    Column[ExecutionOverview]("failure", lambda one: one.failure, long=True),
)


@app.callback(invoke_without_command=True)
def _dead_letters(context: typer.Context) -> None:
    help_without_command(context)


@app.command("list")
def list_letters(
    group: OfGroup = None,
    workflow: OfWorkflow = None,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Show those that are resolved too.")
    ] = False,
    limit: Limit = SHOWN,
    everything: Everything = False,
    after: After = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the manifests that failed too often and wait for a person.

    Example: headway dead-letters list --group nightly
    """
    status = None if resolved else DeadLetterStatus.AWAITING_INTERVENTION
    wanted = DeadLetterFilter(status, group, workflow)
    with deployment(app, database_url) as site:
        (WITH_RESOLVED if resolved else LISTING).show(
            lambda cursor, most: site.history.dead_letters.page(wanted, cursor, most),
            Paging(limit, everything, after),
            now=site.now,
            as_json=as_json,
        )


@app.command("show")
def show_letter(
    letter: Annotated[int, typer.Argument(metavar="LETTER", help="Its id.")],
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show a dead letter: why it is one, its input, and its last executions.

    Example: headway dead-letters show 7
    """
    with deployment(app, database_url) as site:
        found, now = site.history.dead_letters.detail(letter), site.now
        input = site.input_of(found.letter.workflow, found.input)
        ran = found.execution
        hidden = {"execution.input": site.input_of(ran.workflow, ran.input)} if ran else {}
    if as_json:
        echo_json(with_values(found, hidden | {"input": input}))
    else:
        _show(console(), found, told_input(input), now)


@app.command("requeue")
def requeue(
    letters: Letters = None,
    everything: All = False,
    group: OfGroup = None,
    workflow: OfWorkflow = None,
    note: Note = None,
    given: GivenInput = None,
    yes: Yes = False,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run what failed once more and count failures anew; of several it asks first.

    Example: headway dead-letters requeue 7 --note "the server is back"
    """
    input, chosen = read_input(given), wanted(letters, everything, group, workflow)
    if input is not NOT_GIVEN and len(chosen.ids) != 1:
        raise typer.BadParameter("--input goes with one id; others may want another input")
    with deployment(app, database_url) as site:
        if input is not NOT_GIVEN:
            site.with_code("--input")
        own, value = site.operator.dead_letters, AS_IT_FAILED if input is NOT_GIVEN else input
        verbs: Verbs = (
            lambda letter: own.requeue(letter, note, input=value),
            lambda some: own.requeue_many(some, note),
        )
        resolve(site, chosen, "requeue", verbs, yes=yes, as_json=as_json)


@app.command("acknowledge")
def acknowledge(
    letters: Letters = None,
    everything: All = False,
    group: OfGroup = None,
    workflow: OfWorkflow = None,
    note: Note = None,
    yes: Yes = False,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Leave it at the failure: the manifest goes on with its next occurrence.

    Example: headway dead-letters acknowledge --group nightly --note "the tables are gone" --yes
    """
    chosen = wanted(letters, everything, group, workflow)
    with deployment(app, database_url) as site:
        own = site.operator.dead_letters
        verbs: Verbs = (
            lambda letter: own.acknowledge(letter, note),
            lambda some: own.acknowledge_many(some, note),
        )
        resolve(site, chosen, "acknowledge", verbs, yes=yes, as_json=as_json)


def _show(output: Console, found: DeadLetterDetail, input: str, now: datetime) -> None:
    show_fields(output, _fields(found, input), now=now)
    if found.executions:
        show_table(output, RUNS, found.executions, now=now, title="last executions")
    if found.letter.resolved_at is None:
        output.print()
        output.print(cell(f"mend it, then: headway dead-letters requeue {found.letter.id}"))
        output.print(cell(f"or leave it:   headway dead-letters acknowledge {found.letter.id}"))


def _fields(found: DeadLetterDetail, input: str) -> Iterator[tuple[str, object]]:
    one = found.letter
    yield "dead letter", one.id
    yield "manifest", one.external_id
    yield "group", one.group_name
    yield "workflow", one.workflow
    yield "status", one.status
    yield "reason", one.reason
    if found.execution is not None and found.execution.failure is not None:
        yield "failure", found.execution.failure.summary
    yield "since", one.dead_lettered_at
    yield "execution", one.execution_id
    yield "input", input
    yield "resolved", one.resolved_at
    yield "note", one.resolution_note
