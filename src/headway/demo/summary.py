"""What the demo has done, once it is over."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from headway.domain.execution import Execution, ExecutionState
from headway.history import History

STYLES = {"completed": "green", "failed": "red", "retried": "yellow", "dead letters": "magenta"}


@dataclass(frozen=True)
class Row:
    """The numbers of one group; a run that was handed back did not end and is not counted."""

    group: str
    runs: int
    completed: int
    failed: int
    retried: int
    dead_letters: int


def rows(history: History) -> list[Row]:
    """One row per group, by name."""
    by_group: dict[str, list[Execution]] = {}
    for one in history.executions.all():
        if one.state.terminal and one.state is not ExecutionState.HANDED_BACK:
            by_group.setdefault(one.group_name or "", []).append(one)
    return [
        _row(group.name, by_group.get(group.name, ()), group.dead_letters)
        for group in history.groups.all()
    ]


def _row(group: str, ended: Iterable[Execution], dead_letters: int) -> Row:
    runs = list(ended)
    states = Counter(one.state for one in runs)
    return Row(
        group=group,
        runs=len(runs),
        completed=states[ExecutionState.COMPLETED],
        failed=states[ExecutionState.FAILED],
        retried=sum(one.attempt > 1 for one in runs),
        dead_letters=dead_letters,
    )


def table(history: History) -> Table:
    """The summary as a table.

    >>> console.print(table(History(store)))  # doctest: +SKIP
    """
    result = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2))
    result.add_column("group")
    titles = ("runs", *STYLES)
    for title in titles:
        result.add_column(title, justify="right")
    found = rows(history)
    for row in found:
        result.add_row(row.group, *_numbers(row))
    total = Row("all", *(sum(column) for column in zip(*map(_counts, found), strict=True)))
    result.add_row(Text("all", style="bold"), *_numbers(total), end_section=True)
    return result


def _counts(row: Row) -> tuple[int, ...]:
    return (row.runs, row.completed, row.failed, row.retried, row.dead_letters)


def _numbers(row: Row) -> list[Text]:
    styles = ("", *STYLES.values())
    return [
        Text(str(number), style=style if number else "dim")
        for number, style in zip(_counts(row), styles, strict=True)
    ]
