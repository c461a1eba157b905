"""``headway azolla``: this deployment among others, one module per subject."""

import typer

from headway.cli.azolla import (
    captures,
    keygen,
    manifests,
    objectives,
    pauses,
    peers,
    query,
    serve,
)
from headway.cli.exits import help_without_command

app = typer.Typer(help="Note what is to be done in this deployment, and ask why work rests.")
objective = typer.Typer(help="Say what is to be reached, and what keeps it from going on.")
app.command("capture")(captures.capture)
app.command("captures")(captures.captures)
app.command("processed")(captures.processed)
app.command("pauses")(pauses.pauses)
app.command("request-manifest")(manifests.request_manifest)
app.command("show")(manifests.show)
app.command("events")(manifests.list_events)
app.command("unpark")(manifests.unpark)
app.command("serve")(serve.serve)
app.command("peers")(peers.peers)
app.command("ping")(peers.ping)
app.command("query")(query.query)
app.command("keygen")(keygen.keygen)
app.add_typer(objective, name="objective")
objective.command("add")(objectives.add)
objective.command("set")(objectives.change)
objective.command("list")(objectives.show)
objective.command("block")(objectives.block)
objective.command("resolve")(objectives.resolve)


@app.callback(invoke_without_command=True)
def _azolla(context: typer.Context) -> None:
    help_without_command(context)


@objective.callback(invoke_without_command=True)
def _objective(context: typer.Context) -> None:
    help_without_command(context)
