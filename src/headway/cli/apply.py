"""``headway apply``: make the database say what the code says, now and by hand."""

import sys
from contextlib import closing
from typing import Annotated

import typer

from headway.applying import apply_declarations
from headway.cli.output import AsJson, done
from headway.cli.plan_text import notes, summary
from headway.cli.progress import watched
from headway.cli.run import DatabaseUrl
from headway.cli.target import Target, load
from headway.cli.terminal import plain
from headway.domain.plan import Plan
from headway.errors import HeadwayError, RemovalRefused
from headway.store import planning
from headway.store.declarations import Applied
from headway.store.engine import Store
from headway.store.migrate import prepare


def apply(
    target: Target,
    allow_removal: Annotated[
        bool, typer.Option("--allow-removal", help="Remove even more than half of the manifests.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Apply the declarations without starting anything, also ones that were replaced since.

    On a terminal it asks first; elsewhere it does what it is told.

    Example: headway apply shop:hw --yes
    """
    app = load(target)
    with closing(Store(database_url or app.database_url)) as store:
        prepare(store)
        with store.reading() as tx:
            found = planning.plan(tx, app.declaration())
        typer.echo(plain(summary(found)), err=as_json)
        if found.kept_back and not allow_removal:
            raise RemovalRefused(app.name, len(found.kept_back))
        if not (yes or _agreed(found, aside=as_json)):
            raise HeadwayError("nothing was applied")
        with watched("applying manifests", hidden=as_json) as moved:
            applied = apply_declarations(
                app, store, by_hand=True, allow_removal=allow_removal, progress=moved
            )
    done(_told(applied), applied, as_json=as_json)


def _agreed(found: Plan, *, aside: bool) -> bool:
    """Only a person at a terminal is asked, and only if there is something to decide."""
    streams = (sys.stdin, sys.stdout)
    if not all(stream is not None and stream.isatty() for stream in streams):
        return True
    for note in notes(found):
        typer.echo(plain(note), err=aside)
    return not (found.has_changes or found.outdated) or typer.confirm("apply?", err=aside)


def _told(applied: Applied) -> str:
    counts = (
        (applied.created, "added"),
        (applied.changed, "changed"),
        (applied.removed, "removed"),
        (applied.unchanged, "unchanged"),
    )
    return (
        f"applied: {', '.join(f'{count} {what}' for count, what in counts if count) or 'nothing'}"
    )
