"""Where the marks of an axis are, and what stands beside them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import floor, log10

from markupsafe import Markup

from headway.domain.text import printable
from headway.web.drawing.markup import LONGEST_TITLE, element, percent
from headway.web.drawing.words import utc

_SPACINGS = [
    *(timedelta(seconds=one) for one in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=one) for one in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=one) for one in (1, 2, 3, 6, 12)),
    *(timedelta(days=one) for one in (1, 2, 7, 14, 28, 56, 112, 365)),
]
_EPOCH = datetime(1970, 1, 5, tzinfo=UTC)
_EDGE = 0.045


def number_ticks(highest: float, wanted: int = 4) -> list[int]:
    """Round numbers from zero to the first that is not below *highest*.

    >>> number_ticks(37), number_ticks(0), number_ticks(3)
    ([0, 10, 20, 30, 40], [0, 1], [0, 1, 2, 3])
    """
    raw = max(highest, 1) / wanted
    power = 10 ** floor(log10(raw))
    step = max(1, round(next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999)))
    ticks = [0]
    while ticks[-1] < max(highest, 1):
        ticks.append(ticks[-1] + step)
    return ticks


@dataclass(frozen=True, slots=True)
class TimeTick:
    """A mark on an axis of time: when, and where between its ends.

    >>> TimeTick(datetime(2026, 1, 5, 9, 30, tzinfo=UTC), 0.5, "time").text
    '09:30'
    """

    at: datetime
    fraction: float
    style: str

    @property
    def text(self) -> str:
        """What stands beside it, in UTC; the page writes it anew in the reader's zone."""
        form = {"second": "%H:%M:%S", "time": "%H:%M", "day": "%d %b"}[self.style]
        return self.at.astimezone(UTC).strftime(form)


def time_ticks(start: datetime, end: datetime, wanted: int = 6) -> list[TimeTick]:
    """Round moments between *start* and *end*, as many as wanted or fewer.

    >>> nine = datetime(2026, 1, 5, 9, 7, tzinfo=UTC)
    >>> [tick.text for tick in time_ticks(nine, nine + timedelta(hours=1))]
    ['09:10', '09:20', '09:30', '09:40', '09:50', '10:00']
    """
    span = end - start
    spacing = next((one for one in _SPACINGS if span / one <= wanted), span)
    style = "day" if spacing >= timedelta(days=1) else "time"
    style = "second" if spacing < timedelta(minutes=1) else style
    at = _EPOCH + -(-(start - _EPOCH) // spacing) * spacing
    ticks = []
    while at <= end:
        ticks.append(TimeTick(at, (at - start) / span, style))
        at += spacing
    return ticks


def time_axis(ticks: list[TimeTick], top: float, bottom: float, text_at: float) -> list[Markup]:
    """Lines from *top* to *bottom*, and their texts at the height *text_at*.

    >>> nine = datetime(2026, 1, 5, 9, tzinfo=UTC)
    >>> time_axis([TimeTick(nine, 0.5, "time")], 0, 10, 20)[1]
    Markup('<text class="tick-text" x="50%" ... data-style="time">09:00</text>')
    """
    pieces = []
    for tick in ticks:
        x = percent(tick.fraction)
        pieces.append(element("line", class_="tick-line", x1=x, x2=x, y1=top, y2=bottom))
        pieces.append(
            element(
                "text",
                tick.text,
                class_="tick-text",
                x=x,
                y=text_at,
                text_anchor=_anchor(tick.fraction),
                data_instant=utc(tick.at),
                data_style=tick.style,
            )
        )
    return pieces


def title_at(moment: datetime, words: str) -> Markup:
    """A title that begins with a moment, which the page writes anew in the reader's zone.

    >>> title_at(datetime(2026, 1, 5, 9, tzinfo=UTC), "3 completed")
    Markup('<title data-instant="2026-01-05T09:00:00Z" ...>05 Jan 09:00 UTC, 3 completed</title>')
    """
    words = printable(words, LONGEST_TITLE)
    begin = moment.astimezone(UTC).strftime("%d %b %H:%M UTC")
    return element("title", f"{begin}, {words}", data_instant=utc(moment), data_words=words)


def _anchor(fraction: float) -> str:
    """Texts near an end of the axis stay inside it."""
    if fraction < _EDGE:
        return "start"
    return "end" if fraction > 1 - _EDGE else "middle"
