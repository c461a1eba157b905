"""Long lists, page by page: a bounded number of rows unless all are asked for."""

import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Annotated, Generic, TypeVar

import typer

from headway.cli.completion import external_ids, group_names
from headway.cli.output import Column, jsonable, show_table
from headway.cli.terminal import console, say
from headway.domain.paging import DEFAULT_LIMIT, MOST_PER_PAGE, Page
from headway.domain.work_queue import Source

T = TypeVar("T")
Fetch = Callable[[str | None, int], Page[T]]

SHOWN = DEFAULT_LIMIT

Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="Most rows shown.")]
Everything = Annotated[bool, typer.Option("--all", help="Show every row.")]
After = Annotated[
    str | None, typer.Option(metavar="CURSOR", help="Go on where another list has ended.")
]


OfManifest = Annotated[
    str | None,
    typer.Argument(
        metavar="WHAT",
        help="Only of the manifest with this external id.",
        autocompletion=external_ids,
    ),
]
OfGroup = Annotated[
    str | None,
    typer.Option("--group", metavar="NAME", help="Only of this group.", autocompletion=group_names),
]
OfWorkflow = Annotated[
    str | None, typer.Option("--workflow", metavar="NAME", help="Only of this workflow.")
]
OfSource = Annotated[
    Source | None,
    typer.Option("--source", metavar="SOURCE", help=f"Only from there: {', '.join(Source)}."),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Not older than: 2h, 2026-01-05T13:00."),
]


@dataclass(frozen=True)
class Paging:
    """Which part of a list is wanted."""

    limit: int
    everything: bool
    after: str | None


class Walk(Generic[T]):
    """The rows that are wanted, fetched page by page; ``rest`` leads to those after them.

    >>> list(Walk(lambda cursor, limit: Page(("a", "b")), Paging(50, False, None)))
    ['a', 'b']
    """

    def __init__(self, fetch: Fetch[T], paging: Paging) -> None:
        self._fetch = fetch
        self._paging = paging
        self.rest: str | None = paging.after

    def __iter__(self) -> Iterator[T]:
        left = self._paging.limit
        while self._paging.everything or left > 0:
            most = MOST_PER_PAGE if self._paging.everything else min(left, MOST_PER_PAGE)
            page = self._fetch(self.rest, most)
            self.rest = page.next
            yield from page.items
            left -= len(page.items)
            if page.next is None:
                return


@dataclass(frozen=True)
class Listing(Generic[T]):
    """How one kind of thing is listed: its columns, and what is said if there is none.

    >>> from datetime import UTC
    >>> Listing[str]([Column("name", str)], "no groups").show(
    ...     lambda cursor, limit: Page(),
    ...     Paging(50, False, None),
    ...     now=datetime.now(UTC),
    ...     as_json=False,
    ... )
    no groups
    """

    columns: Sequence[Column[T]]
    nothing: str

    def show(self, fetch: Fetch[T], paging: Paging, *, now: datetime, as_json: bool) -> None:
        """Print the rows as a table with moments as seen from *now*, or as one JSON array."""
        walk = Walk(fetch, paging)
        if as_json:
            _echo_array(iter(walk))
        else:
            self._show_tables(iter(walk), now)
        if walk.rest is not None:
            say(f"there is more: --all shows it, --after {walk.rest} goes on from here")

    def _show_tables(self, rows: Iterator[T], now: datetime) -> None:
        output, first = console(), True
        while some := list(islice(rows, MOST_PER_PAGE)):
            # On a terminal the next rows may need other widths, or have room for other columns.
            headed = first or output.is_terminal
            show_table(output, self.columns, some, now=now, headed=headed)
            first = False
        if first:
            typer.echo(self.nothing)


def _echo_array(rows: Iterator[object]) -> None:
    """One array, written row by row: nobody has to hold a million of them."""
    before = "["
    for row in rows:
        text = json.dumps(jsonable(row), indent=2)
        typer.echo(f"{before}\n{textwrap.indent(text, '  ')}", nl=False)
        before = ","
    typer.echo("[]" if before == "[" else "\n]")
