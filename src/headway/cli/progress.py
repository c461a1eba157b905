"""How far long work is: a bar on stderr where somebody looks at it, nothing elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from headway.domain.progress import Progress

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """A bar for as long as the block lasts, which moves on by so many things each time.

    >>> with progress("requeueing", 200) as advance:  # doctest: +SKIP
    ...     advance(100)
    """
    with _bar() as bar:
        task = bar.add_task(what, total=total)
        yield lambda number: bar.advance(task, number)


@contextmanager
def watched(what: str, *, hidden: bool = False) -> Iterator[Progress]:
    """A bar that the work itself moves: it says how much of how much is done.

    >>> with watched("migrating", hidden=True) as moved:
    ...     moved(1, 13)
    """
    with _bar(hidden=hidden) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar(*, hidden: bool = False) -> Bar:
    output = Console(stderr=True)
    return Bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        console=output,
        transient=True,
        disable=hidden or not output.is_terminal,
    )
