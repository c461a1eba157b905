"""The demo in a terminal: everything at a glance, eight times a second."""

import time
from collections.abc import Iterable
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headway.demo.snapshot import Snapshot, Snapshots
from headway.domain.execution import Execution, ExecutionState
from headway.domain.text import for_terminal
from headway.history import GroupOverview

MARKS = {
    ExecutionState.COMPLETED: ("✔", "+", "green"),
    ExecutionState.FAILED: ("✘", "x", "red"),
    ExecutionState.CANCELLED: ("–", "-", "yellow"),
}
QUEUE_SHOWN = 6
NARROW = 100
# Fixed, so that columns do not move from one picture to the next.
JOB_WIDTH, STEP_WIDTH, NOTE_WIDTH, TIME_WIDTH = 15, 12, 17, 6


class Screen:
    """A live view of *snapshots*, on the terminal's alternate screen.

    >>> with Screen(Console(), Snapshots(history), slots=6) as screen:  # doctest: +SKIP
    ...     screen.refresh()
    """

    def __init__(self, console: Console, snapshots: Snapshots, slots: int) -> None:
        self._console = console
        self._snapshots = snapshots
        self._slots = slots
        self._began = time.monotonic()
        self._remark = "Ctrl-C ends"
        self._announced = ""
        self._unicode = console.encoding.lower().startswith("utf")
        self._live = Live(console=console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        """Take over the terminal."""
        self._live.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        """Give the terminal back as it was."""
        self._live.__exit__(None, None, None)

    def refresh(self) -> None:
        """Draw how things stand now."""
        self._live.update(self.draw(self._snapshots.take()), refresh=True)

    def announce(self, line: str) -> None:
        """Show where the dashboard is, below everything else."""
        self._announced = line

    def say(self, remark: str) -> None:
        """Show *remark* in the corner."""
        self._remark = remark

    def draw(self, snapshot: Snapshot) -> Layout:
        """The whole picture of *snapshot*, as high and wide as the terminal."""
        whole = Layout()
        below = Layout(name="below")
        whole.split_column(
            Layout(self._header(snapshot), size=1),
            Layout(
                _panel("groups", self._groups(snapshot), self._legend_of_groups()),
                size=len(snapshot.groups) + 3,
            ),
            Layout(_panel("running", self._running(snapshot)), size=self._slots + 2),
            below,
            *([Layout(self._footer(), size=1)] if self._announced else []),
        )
        below.split_row(
            Layout(_panel("finished", self._recent(snapshot), self._legend_of_ends()), ratio=3),
            Layout(_panel("coming next", self._upcoming(snapshot)), ratio=2),
        )
        return whole

    def _legend_of_groups(self) -> Text | None:
        block = self._glyph("█", "#")
        return self._legend(
            (self._glyph("■", "#"), "cyan", "running"),
            (self._glyph("□", "."), "dim", "free"),
            (self._glyph("●", "o"), "yellow", "queued"),
            (block, "green", "completed"),
            (block, "red", "failed"),
        )

    def _legend_of_ends(self) -> Text | None:
        return self._legend(
            *((self._glyph(mark, plain), style, str(state))
              for state, (mark, plain, style) in MARKS.items())
        )  # fmt: skip

    def _legend(self, *entries: tuple[str, str, str]) -> Text | None:
        """What the symbols mean, where there is room for it."""
        if self._narrow:
            return None
        parts = [Text.assemble((mark, style), " ", meaning) for mark, style, meaning in entries]
        return Text("  ").join(parts)

    def _header(self, snapshot: Snapshot) -> RenderableType:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        header = Table.grid(expand=True, padding=(0, 1))
        header.add_column()
        header.add_column(justify="right")
        header.add_row(
            Text.assemble(
                (" headway demo ", "bold reverse"),
                f"  {minutes:02d}:{seconds:02d}   ",
                (f"{snapshot.total('completed')} completed", "green"),
                "   ",
                (f"{snapshot.total('failed')} failed", "red"),
                "   ",
                (_dead_letters(len(snapshot.dead)), "magenta"),
            ),
            Text(self._remark, style="dim"),
        )
        return header

    def _footer(self) -> RenderableType:
        return Text(f" {self._announced}", style="bold", no_wrap=True, overflow="crop")

    def _groups(self, snapshot: Snapshot) -> RenderableType:
        table = _table()
        table.add_column("group", no_wrap=True)
        table.add_column("cap", justify="right")
        table.add_column("running", width=QUEUE_SHOWN + 1, no_wrap=True)
        table.add_column("queued", width=QUEUE_SHOWN + len(" +999"), no_wrap=True)
        for title in ("completed", "failed", "dead"):
            table.add_column(title, justify="right")
        table.add_column("runs", ratio=1, no_wrap=True)
        longest = max((group.completed + group.failed for group in snapshot.groups), default=0)
        for group in snapshot.groups:
            table.add_row(
                Text(for_terminal(group.name, 24), style="bold"),
                self._glyph("–", "-")
                if group.max_active_jobs is None
                else str(group.max_active_jobs),
                self._slots_of(group),
                self._queue_of(group),
                Text(str(group.completed), style="green"),
                _count(group.failed, "red"),
                _count(group.dead_letters, "magenta"),
                _Share(group.completed, group.failed, max(longest, 1), self._glyph("█", "#")),
            )
        return table

    def _slots_of(self, group: GroupOverview) -> Text:
        used = self._glyph("■", "#") * group.active
        free = self._glyph("□", ".") * ((group.max_active_jobs or 0) - group.active)
        return Text.assemble((used, "cyan"), (free, "dim"))

    def _queue_of(self, group: GroupOverview) -> Text:
        more = group.queued - QUEUE_SHOWN
        marks = self._glyph("●", "o") * min(group.queued, QUEUE_SHOWN)
        return Text(f"{marks} +{more}" if more > 0 else marks, style="yellow")

    def _running(self, snapshot: Snapshot) -> RenderableType:
        table = _table(header=False)
        table.add_column(width=JOB_WIDTH, no_wrap=True)
        table.add_column(width=STEP_WIDTH, no_wrap=True)
        table.add_column(ratio=1)
        table.add_column(justify="right", width=4)
        table.add_column(width=NOTE_WIDTH, no_wrap=True)
        table.add_column(justify="right", width=TIME_WIDTH)
        for one in snapshot.running[: self._slots]:
            progress = one.progress or 0.0
            table.add_row(
                Text(_name(one), style="bold cyan"),
                Text(for_terminal(one.running_step or "", 20)),
                ProgressBar(total=1.0, completed=progress, complete_style="cyan"),
                f"{progress:.0%}",
                Text(for_terminal(one.progress_note or "", 24), style="dim"),
                _seconds((snapshot.now - (one.started_at or snapshot.now)).total_seconds()),
            )
        return table

    def _recent(self, snapshot: Snapshot) -> RenderableType:
        table = _table(header=False)
        table.add_column(width=1)
        table.add_column(width=JOB_WIDTH, no_wrap=True)
        table.add_column(justify="right", width=TIME_WIDTH)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis" if self._unicode else "crop")
        for one in snapshot.recent:
            mark, plain, colour = MARKS[one.state]
            table.add_row(
                Text(self._glyph(mark, plain), style=colour),
                Text(_name(one)),
                Text(_seconds(_duration(one)), style="dim"),
                Text(_story(one, short=self._narrow), style=colour),
            )
        return table

    def _upcoming(self, snapshot: Snapshot) -> RenderableType:
        table = _table(header=False)
        table.add_column(justify="right", width=TIME_WIDTH)
        table.add_column(width=JOB_WIDTH, no_wrap=True)
        table.add_column(ratio=1, no_wrap=True)
        for external_id in snapshot.dead:
            table.add_row(
                Text(self._glyph("☠", "!"), style="magenta"),
                Text(for_terminal(external_id, 24)),
                Text("dead" if self._narrow else "dead letter", style="magenta"),
            )
        for one in snapshot.upcoming:
            wait = (one.at - snapshot.now).total_seconds()
            table.add_row(
                Text(_seconds(wait) if wait > 0 else "now", style="yellow"),
                Text(for_terminal(one.external_id, 24)),
                Text("retry" if one.is_retry else "", style="red"),
            )
        return table

    @property
    def _narrow(self) -> bool:
        return self._console.width < NARROW

    def _glyph(self, mark: str, plain: str) -> str:
        return mark if self._unicode else plain


class _Share:
    """A bar of completed and failed runs, in proportion to the busiest group."""

    def __init__(self, completed: int, failed: int, whole: int, block: str) -> None:
        self._parts = ((completed, "green"), (failed, "red"))
        self._whole = whole
        self._block = block

    def __rich_console__(self, console: Console, options: object) -> Iterable[Text]:
        width = getattr(options, "max_width", 10)
        cells = [(max(1, number * width // self._whole), style) for number, style in self._parts]
        bar = Text(no_wrap=True, overflow="crop")
        for (number, style), (cell, _) in zip(self._parts, cells, strict=True):
            bar.append(self._block * (cell if number else 0), style=style)
        yield bar


def _panel(title: str, content: RenderableType, legend: Text | None = None) -> Panel:
    return Panel(
        Group(content),
        title=title,
        title_align="left",
        subtitle=legend,
        subtitle_align="right",
        border_style="dim",
    )


def _table(header: bool = True) -> Table:
    return Table(
        box=None,
        expand=True,
        show_header=header,
        header_style="dim",
        padding=(0, 1),
        pad_edge=False,
    )


def _count(number: int, style: str) -> Text:
    return Text(str(number), style=style if number else "dim")


def _dead_letters(number: int) -> str:
    return f"{number} dead letter{'' if number == 1 else 's'}"


def _name(one: Execution) -> str:
    return for_terminal(one.external_id or one.workflow, 24)


def _duration(one: Execution) -> float:
    if one.finished_at is None or one.started_at is None:
        return 0.0
    return (one.finished_at - one.started_at).total_seconds()


def _seconds(seconds: float) -> str:
    """
    >>> _seconds(2.345), _seconds(55.0), _seconds(3595.0)
    ('2.3 s', '55 s', '60 min')
    """
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _story(one: Execution, short: bool) -> str:
    if one.failure is None:
        return f"attempt {one.attempt}" if one.attempt > 1 else ""
    told = one.failure.type if short else one.failure.summary
    return for_terminal(told, 200).replace("\n", " ")
