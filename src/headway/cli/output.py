"""What operator commands print: tables and fields for people, JSON for programs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar

import typer
from pydantic_core import to_jsonable_python
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headway.cli.fitting import Measure, columns_that_fit
from headway.cli.terminal import cell, plain
from headway.cli.times import duration, exact, relative
from headway.domain.masking import MASK

T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "handed_back": "yellow",
    "in_progress": "cyan",
    "pending": "blue",
    "awaiting_intervention": "red",
    "disabled": "yellow",
}


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column of a list: its title, and what stands in it.

    Where a terminal is too narrow for all, one that is *long* is broken into lines, and one that is
    *spare* is left out.
    """

    title: str
    told: Callable[[T], object]
    long: bool = False
    spare: bool = False


def echo_json(value: object) -> None:
    """Print one JSON value: moments in ISO 8601, durations in seconds.

    >>> from datetime import UTC
    >>> echo_json({"at": datetime(2026, 1, 5, tzinfo=UTC)})
    {
      "at": "2026-01-05T00:00:00Z"
    }
    """
    typer.echo(json.dumps(jsonable(value), indent=2))


def jsonable(value: object) -> Any:
    """*value*, dataclasses and all, as JSON knows it.

    >>> jsonable(timedelta(minutes=1))
    60.0
    """
    return to_jsonable_python(_named(value), timedelta_mode="float", inf_nan_mode="null")


def _named(value: Any) -> Any:
    """*value* with the names of its fields, also where pydantic would make a list of a tuple."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _named(part) for name, part in value._asdict().items()}
    if is_dataclass(value):
        return {one.name: _named(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: _named(part) for key, part in value.items()}
    return [_named(part) for part in value] if isinstance(value, list | tuple) else value


def show_table(
    output: Console,
    columns: Sequence[Column[T]],
    rows: Iterable[T],
    *,
    now: datetime,
    title: str = "",
    headed: bool = True,
) -> None:
    """Print rows as a table, below a *title* if it is one of several things.

    People get moments as seen from *now*, and every row as fields where a table is too wide.

    >>> from datetime import UTC
    >>> show_table(Console(), [Column[str]("name", str)], ["nightly"], now=datetime.now(UTC))
    name
    nightly
    """
    if title:
        output.print()
        output.print(cell(title, "bold"))
    people = output.is_terminal
    cells = [[shown(one.told(row), now, people=people) for one in columns] for row in rows]
    measures = [_measure(one, [row[at] for row in cells]) for at, one in enumerate(columns)]
    chosen = columns_that_fit(measures, output.width)
    if chosen is None:
        _show_each_as_fields(output, columns, cells)
        return
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=headed)
    for at in chosen:
        least = measures[at].least if people else None
        made.add_column(
            columns[at].title, no_wrap=not columns[at].long, overflow="fold", min_width=least
        )
    for row in cells:
        made.add_row(*(row[at] for at in chosen))
    show_lines(output, made)
    missing = [
        one.title for at, one in enumerate(columns) if at not in chosen and not measures[at].empty
    ]
    if missing:
        output.print(cell(f"no room here for {', '.join(missing)}; --json tells all", "dim"))


def _measure(column: Column[T], cells: Sequence[Text]) -> Measure:
    widths = [one.cell_len for one in cells]
    widest = max([*widths, cell_len(column.title)])
    return Measure(widest, column.long, column.spare, empty=not any(widths))


def _show_each_as_fields(
    output: Console, columns: Sequence[Column[T]], rows: Iterable[Sequence[Text]]
) -> None:
    for number, row in enumerate(rows):
        if number:
            output.print()
        show_lines(
            output, _fields((one.title, told) for one, told in zip(columns, row, strict=True))
        )


def show_lines(output: Console, made: Table) -> None:
    """Print a table; where no terminal shows it, without the blanks at the ends of its lines.

    >>> show_lines(Console(), Table("name"))  # doctest: +SKIP
    """
    if output.is_terminal:
        output.print(made)
        return
    with output.capture() as captured:
        output.print(made)
    for line in captured.get().splitlines():
        output.print(Text(line.rstrip()), soft_wrap=True)


def shown(value: object, now: datetime, *, people: bool) -> Text:
    """One value in a table.

    >>> from datetime import UTC
    >>> shown(True, datetime.now(UTC), people=True).plain
    'yes'
    """
    match value:
        case Text():
            return value
        case None:
            return Text("")
        case bool():
            return cell("yes" if value else "no", "" if value else "yellow")
        case datetime():
            return cell(relative(value, now) if people else exact(value))
        case timedelta():
            return cell(duration(value))
        case _:
            return cell(value, STYLES.get(str(value), ""))


def show_fields(output: Console, fields: Iterable[tuple[str, object]], *, now: datetime) -> None:
    """One thing, a line for each of its fields that has a value; moments relative and exact.

    >>> from datetime import UTC
    >>> show_fields(Console(), [("group", "nightly"), ("cap", None)], now=datetime.now(UTC))
    group  nightly
    """
    told = []
    for label, value in fields:
        text = shown(value, now, people=False)
        if isinstance(value, datetime):
            text.append(f"  ({relative(value, now)})")
        told.append((label, text))
    show_lines(output, _fields(told))


def _fields(told: Iterable[tuple[str, Text]]) -> Table:
    grid = Table.grid(padding=(0, 2), pad_edge=False)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for label, text in told:
        if text:
            grid.add_row(cell(label), text)
    return grid


def done(sentence: str, facts: object, *, as_json: bool) -> None:
    """Say what was done: a sentence for people, the facts for programs.

    >>> done("queued load-42 as entry 7", {"entry": 7}, as_json=False)
    queued load-42 as entry 7
    """
    if as_json:
        echo_json(facts)
    else:
        typer.echo(plain(sentence))


@contextmanager
def each_done(*, as_json: bool) -> Iterator[Callable[[str, object], None]]:
    """Say of several things what was done, each at once: one of those after it may fail.

    >>> with each_done(as_json=False) as told:
    ...     told("entry 7: cancelled", {"entry": 7})
    entry 7: cancelled
    """
    facts: list[object] = []

    def told(sentence: str, fact: object) -> None:
        facts.append(fact)
        if not as_json:
            typer.echo(plain(sentence))

    try:
        yield told
    finally:
        if as_json and facts:
            echo_json(facts)


def with_values(found: object, values: Mapping[str, object]) -> Any:
    """*found* as JSON, with other values at dotted paths in it.

    >>> with_values({"execution": {"input": "text"}}, {"execution.input": [3]})
    {'execution': {'input': [3]}}
    """
    told = jsonable(found)
    for path, value in values.items():
        *above, last = path.split(".")
        place = told
        for name in above:
            place = place[name]
        place[last] = value
    return told


def told_input(value: object) -> str:
    """An input on one line; one that is masked says how to see it.

    >>> told_input({"day": 3}), told_input(None)
    ('{"day": 3}', '')
    """
    if value == MASK:
        return f"{MASK}  (--app MODULE:APP shows what its workflow does not call secret)"
    return "" if value is None else json.dumps(value, ensure_ascii=False)
