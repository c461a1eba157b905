"""What these commands share: the application's ``hw.azolla``, and lists for people and programs."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from operator import itemgetter
from typing import Annotated

import typer

from headway.cli.database import open_database
from headway.cli.output import Column, show_table
from headway.cli.target import load
from headway.cli.terminal import console
from headway.definition.app import Headway
from headway.definition.azolla import Azolla
from headway.domain.azolla.artifacts import Artifact
from headway.store.engine import Store
from headway.store.migrate import prepare

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
# What people have written stands at the end of each row.
TEXTS = 2
Limit = Annotated[int, typer.Option(metavar="N", help="Most rows shown.")]


@contextmanager
def on_its_database(target: str) -> Iterator[tuple[Headway, Store]]:
    """The application *target*, and its database for as long as the block lasts.

    >>> with on_its_database("hello:hw") as (app, store): ...  # doctest: +SKIP
    """
    app = load(target)
    with closing(open_database(app.database_url)) as store:
        prepare(store, to_write=False)
        yield app, store


@contextmanager
def opened(target: str) -> Iterator[Azolla]:
    """The desk of the application *target*, on its database.

    >>> with opened("hello:hw") as azolla: ...  # doctest: +SKIP
    """
    with on_its_database(target) as (app, store):
        yield Azolla(app.name, store)


def echo_json(found: Sequence[Artifact]) -> None:
    """Print artifacts as they cross between deployments.

    >>> echo_json([])
    []
    """
    typer.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=2))


def echo_rows(titles: Sequence[str], rows: Sequence[Sequence[object]], nothing: str) -> None:
    """Print a table, or that there is *nothing*.

    >>> echo_rows(["id"], [], "no captures")
    no captures
    """
    if not rows:
        typer.echo(nothing)
        return
    columns = [
        Column[Sequence[object]](title, itemgetter(at), long=at >= len(titles) - TEXTS)
        for at, title in enumerate(titles)
    ]
    show_table(console(), columns, rows, now=datetime.now(UTC))
