"""``headway tokens``: who is let in by REST API and dashboard, and what they may do."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from headway.cli.asking import read_span
from headway.cli.deployment import App, DatabaseUrl, deployment
from headway.cli.exits import help_without_command
from headway.cli.output import AsJson, Column, echo_json, show_table
from headway.cli.terminal import console, plain, say
from headway.definition.runtime import Runtime
from headway.domain.access import Token

app = typer.Typer(help="Make, list and revoke the tokens of REST API and dashboard.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, as the audit names them.")]


@app.callback(invoke_without_command=True)
def _tokens(context: typer.Context) -> None:
    help_without_command(context)


@app.command("create")
def create(
    name: Name,
    scope: Annotated[
        str, typer.Option(metavar="SCOPE", help="read, operate (act on jobs) or admin.")
    ] = "read",
    expires: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="How long it is valid: 90d. Else until it is revoked."),
    ] = None,
    app: App = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this once: only its hash is kept.

    Example: headway tokens create alice --scope operate --expires 90d
    """
    span = read_span("--expires", expires)
    with deployment(app, database_url) as site:
        made = site.operator.tokens.create(name, scope, expires_in=span)
    if as_json:
        echo_json({**vars(made.token), "text": made.text})
        return
    typer.echo(made.text)
    say(f"{_told(made.token)}. It is not shown again; keep it like a password.")


@app.command("list")
def list_tokens(app: App = None, database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """List tokens without their texts, the newest first.

    Example: headway tokens list
    """
    with deployment(app, database_url) as site:
        found = Runtime(site.app.name, site.app.registry, site.store).tokens.all()
        now = site.now
    if as_json:
        echo_json(found)
    elif found:
        show_table(console(), _columns(now), found, now=now)
    else:
        typer.echo("no tokens; make one: headway tokens create NAME --scope operate")


@app.command("revoke")
def revoke(
    name: Name, app: App = None, database_url: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """End a token, at once and for good; its name is free again.

    Example: headway tokens revoke alice
    """
    with deployment(app, database_url) as site:
        ended = site.operator.tokens.revoke(name)
    if as_json:
        echo_json(ended)
    else:
        typer.echo(plain(f"{ended.name}: token hw_{ended.prefix}_… is revoked"))


def _told(token: Token) -> str:
    until = "until it is revoked"
    if token.expires_at is not None:
        until = f"until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    return f"{token.name} may {token.scope} {until}"


def _state(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.valid(now) else "expired"


def _columns(now: datetime) -> Sequence[Column[Token]]:
    return (
        Column("name", lambda one: one.name, long=True),
        Column("scope", lambda one: one.scope),
        Column("state", lambda one: _state(one, now)),
        Column("begins with", lambda one: f"hw_{one.prefix}_", spare=True),
        Column("created", lambda one: one.created_at, spare=True),
        Column("by", lambda one: one.created_by, long=True, spare=True),
        Column("expires", lambda one: one.expires_at or "never"),
        Column("last used", lambda one: one.last_used_at or "never"),
    )
