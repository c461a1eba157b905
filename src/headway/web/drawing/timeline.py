"""What ran when: a block for each group, a bar for each run, one below the other if they meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from headway.web.drawing.lanes import lanes
from headway.web.drawing.markup import element, joined, linked, percent, shortened
from headway.web.drawing.ticks import time_axis, time_ticks, title_at
from headway.web.drawing.words import counted, lasted, state_class, state_word

MOST_LANES = 12
TOP = 28
HEAD = 26
LANE = 18
BAR = 15
FOOT = 8
_NARROWEST = 0.002
_NAMED = 0.06


@dataclass(frozen=True, slots=True)
class Stretch:
    """One run: whose it was, when it began, and its end unless it still runs.

    >>> Stretch("load-users", "completed", begin, end, "/executions/7").state  # doctest: +SKIP
    'completed'
    """

    name: str
    state: str
    begin: datetime
    end: datetime | None
    href: str


@dataclass(frozen=True, slots=True)
class Row:
    """A group and what ran in it."""

    name: str
    href: str | None
    runs: Sequence[Stretch]


def timeline(rows: Sequence[Row], start: datetime, end: datetime, now: datetime) -> Markup:
    """The whole picture from *start* to *end*; what still runs reaches to *now*.

    >>> from datetime import UTC, timedelta
    >>> nine = datetime(2026, 1, 5, 9, tzinfo=UTC)
    >>> run = Stretch("load-users", "completed", nine, nine + timedelta(minutes=5), "/executions/7")
    >>> timeline([Row("users", None, [run])], nine, nine + timedelta(hours=1), nine)
    Markup('<svg class="timeline" ... aria-label="1 group, 1 run">...</svg>')
    """
    blocks, y = [], float(TOP)
    for row in rows:
        block, height = _block(row, start, end, now, y)
        blocks.append(block)
        y += height
    runs = sum(len(row.runs) for row in rows)
    return element(
        "svg",
        *time_axis(time_ticks(start, end), TOP - 6, y, 14),
        *blocks,
        *_now(start, end, now, y),
        class_="timeline",
        width="100%",
        height=y,
        role="group",
        aria_label=f"{counted(len(rows), 'group')}, {counted(runs, 'run')}",
    )


def _block(
    row: Row, start: datetime, end: datetime, now: datetime, y: float
) -> tuple[Markup, float]:
    """A group's heading, and its runs below it."""
    spans = [_span(run, start, end, now) for run in row.runs]
    lines = lanes(spans, gap=_NARROWEST / 2)
    hidden = sum(line >= MOST_LANES for line in lines)
    shown = min(max(lines, default=0) + 1, MOST_LANES)
    height = HEAD + shown * LANE + FOOT
    bars = [
        _bar(run, span, y + HEAD + line * LANE, now)
        for run, span, line in zip(row.runs, spans, lines, strict=True)
        if line < MOST_LANES
    ]
    more = f", {hidden:,} of them not shown" if hidden else ""
    heading = element(
        "text",
        linked(element("tspan", shortened(row.name, 60), class_="row-name"), row.href),
        element("tspan", f"{counted(len(row.runs), 'run')}{more}", class_="row-count", dx=8),
        x=8,
        y=y + 17,
    )
    line = element("line", class_="row-line", x1=0, x2="100%", y1=y, y2=y)
    return joined([line, *bars, heading]), height


def _span(run: Stretch, start: datetime, end: datetime, now: datetime) -> tuple[float, float]:
    """Begin and end as parts of the width, within the picture and wide enough to be seen."""
    whole = end - start
    begin = min(max((run.begin - start) / whole, 0.0), 1 - _NARROWEST)
    until = ((run.end or max(now, run.begin)) - start) / whole
    return begin, min(max(until, begin + _NARROWEST), 1.0)


def _bar(run: Stretch, span: tuple[float, float], y: float, now: datetime) -> Markup:
    """The bar is a picture of its own, which cuts off a name that is too long for it."""
    begin, end = span
    took = lasted(((run.end or max(now, run.begin)) - run.begin).total_seconds())
    words = f"{run.name}: {state_word(run.state)}, {took}" + ("" if run.end else " so far")
    pieces = [title_at(run.begin, words), element("rect", width="100%", height=BAR, rx=3)]
    pieces.append(element("rect", class_="stretch-edge", width=3, height=BAR, rx=1.5))
    if end - begin >= _NAMED:
        name = shortened(run.name, 60)
        pieces.append(element("text", name, class_="stretch-name", x=8, y=BAR - 4))
    bar = element(
        "svg",
        *pieces,
        class_=f"stretch {state_class(run.state)}",
        x=percent(begin),
        y=y,
        width=percent(end - begin),
        height=BAR,
    )
    return element("a", bar, href=run.href, aria_label=words)


def _now(start: datetime, end: datetime, now: datetime, bottom: float) -> list[Markup]:
    if not start <= now <= end:
        return []
    x = percent((now - start) / (end - start))
    return [element("line", class_="now-line", x1=x, x2=x, y1=TOP - 6, y2=bottom)]
