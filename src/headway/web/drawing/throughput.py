"""How much was completed and how much failed, minute by minute or hour by hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from markupsafe import Markup

from headway.web.drawing.markup import element, percent
from headway.web.drawing.ticks import number_ticks, time_axis, time_ticks, title_at
from headway.web.drawing.words import compact, counted, lasted, utc

HEIGHT = 180
TOP, FLOOR = 10, 156
TEXT_AT = 174
AXIS_WIDTH = 40
_FILLED = 0.78


@dataclass(frozen=True, slots=True)
class Tally:
    """What ended within one bar of the chart, which begins at *start*.

    >>> Tally(datetime(2026, 1, 5, 9), completed=3, failed=1).total
    4
    """

    start: datetime
    completed: int
    failed: int

    @property
    def total(self) -> int:
        """The height of the whole bar."""
        return self.completed + self.failed


def throughput_chart(tallies: Sequence[Tally], bar: timedelta, label: str) -> Markup:
    """Stacked bars with two axes and, for those who cannot see it, a table of the same numbers.

    *tallies* follow one another without a gap, each as long as *bar*.

    >>> nine = datetime(2026, 1, 5, 9, tzinfo=UTC)
    >>> throughput_chart([Tally(nine, 3, 1)], timedelta(minutes=1), "Runs per minute")
    Markup('<figure class="chart">...<caption>Runs per minute, in steps of 1 min: ...</figure>')
    """
    highest = max((one.total for one in tallies), default=0)
    ticks = number_ticks(highest)
    return element(
        "figure",
        _numbers(ticks),
        _plot(tallies, bar, ticks, label),
        _table(tallies, bar, label),
        class_="chart",
    )


def _height_of(value: float, ticks: list[int]) -> float:
    return (FLOOR - TOP) * value / ticks[-1]


def _numbers(ticks: list[int]) -> Markup:
    texts = [
        element(
            "text",
            compact(tick),
            class_="tick-text",
            x=AXIS_WIDTH - 8,
            y=FLOOR - _height_of(tick, ticks) + 4,
            text_anchor="end",
        )
        for tick in ticks
    ]
    return element(
        "svg", *texts, class_="chart-axis", width=AXIS_WIDTH, height=HEIGHT, aria_hidden="true"
    )


def _plot(tallies: Sequence[Tally], bar: timedelta, ticks: list[int], label: str) -> Markup:
    lines = [
        element(
            "line",
            class_="tick-floor" if tick == 0 else "tick-line",
            x1=0,
            x2="100%",
            y1=FLOOR - _height_of(tick, ticks),
            y2=FLOOR - _height_of(tick, ticks),
        )
        for tick in ticks
    ]
    bars = [_bar(index, one, len(tallies), bar, ticks) for index, one in enumerate(tallies)]
    return element(
        "svg",
        *lines,
        *_times(tallies, bar),
        *bars,
        class_="chart-plot",
        width="100%",
        height=HEIGHT,
        role="img",
        aria_label=f"{label}: {_summary(tallies)}",
    )


def _times(tallies: Sequence[Tally], bar: timedelta) -> list[Markup]:
    if not tallies:
        return []
    ticks = time_ticks(tallies[0].start, tallies[-1].start + bar)
    return time_axis(ticks, FLOOR, FLOOR + 4, TEXT_AT)


def _bar(index: int, tally: Tally, count: int, bar: timedelta, ticks: list[int]) -> Markup:
    """One bar: an invisible column to rest the pointer on, what completed, what failed above it."""
    width = _FILLED / count
    x = (index + (1 - _FILLED) / 2) / count
    completed, failed = _height_of(tally.completed, ticks), _height_of(tally.failed, ticks)
    column = element(
        "rect",
        class_="chart-column",
        x=percent(index / count),
        y=TOP,
        width=percent(1 / count),
        height=FLOOR - TOP,
    )
    parts = [
        element(
            "rect",
            class_=f"chart-bar {kind}",
            x=percent(x),
            y=FLOOR - above - height,
            width=percent(width),
            height=height,
        )
        for kind, height, above in (
            ("is-completed", completed, 0.0),
            ("is-failed", failed, completed),
        )
        if height
    ]
    words = f"{tally.completed:,} completed, {tally.failed:,} failed"
    said = title_at(tally.start, f"{lasted(bar.total_seconds())}: {words}")
    return element("g", said, column, *parts, class_="chart-hover")


def _summary(tallies: Sequence[Tally]) -> str:
    completed, failed = (
        sum(one.completed for one in tallies),
        sum(one.failed for one in tallies),
    )
    return f"{counted(completed, 'run')} completed, {failed:,} failed"


def _table(tallies: Sequence[Tally], bar: timedelta, label: str) -> Markup:
    """Only bars with something in them: an hour of silence is not read out sixty times."""
    head = element("tr", *(element("th", text, scope="col") for text in _COLUMNS))
    rows = [
        element(
            "tr",
            element("th", _moment(one.start), scope="row"),
            element("td", str(one.completed)),
            element("td", str(one.failed)),
        )
        for one in tallies
        if one.total
    ]
    caption = f"{label}, in steps of {lasted(bar.total_seconds())}: {_summary(tallies)}"
    return element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", *rows, ""),
        class_="chart-table",
    )


_COLUMNS = ("Begins", "Completed", "Failed")


def _moment(start: datetime) -> Markup:
    return element(
        "time", start.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"), datetime=utc(start)
    )
