"""What ran when, group by group."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from fastapi import Request, Response

from headway.domain.text import shown
from headway.domain.views import ExecutionOverview
from headway.errors import DefinitionError
from headway.web.context import surface
from headway.web.drawing.timeline import Row, Stretch, timeline
from headway.web.drawing.words import utc
from headway.web.rendering import page, url
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter()

MOST_RUNS = 1_000
SPANS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
SPANS_SHOWN = {"15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 days"}
# The span of a deployment that is younger than the hour shown otherwise, in bits of half a minute.
YOUNG = "all"
BIT = timedelta(seconds=30)
NO_GROUP = "without a group"
STEPS = 300
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """The stretch of time that is looked at; one that ends *now* moves on by itself.

    Without a *span* it is an hour, or the whole time of a deployment that *began* within it.

    >>> noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    >>> Window.asked("1h", "", noon).live
    True
    >>> utc(Window.asked("1h", "2026-01-05T10:00:00Z", noon).start)
    '2026-01-05T09:00:00Z'
    >>> utc(Window.asked("", "", noon, began=noon - timedelta(minutes=4)).start)
    '2026-01-05T11:56:00Z'
    """

    span: str
    start: datetime
    end: datetime
    live: bool

    @classmethod
    def asked(cls, span: str, end: str, now: datetime, began: datetime | None = None) -> "Window":
        """What the address asks for."""
        until = _moment(end) if end else now
        live = until >= now
        if span not in SPANS:
            span = YOUNG if live and began is not None and now - began < SPANS["1h"] else "1h"
        length = SPANS[span] if span in SPANS else _rounded_up(now - (began or now), BIT)
        if live:
            # It moves in steps that cannot be seen, so that most refreshes find nothing new.
            until = EPOCH + _rounded_up(now - EPOCH, length / STEPS)
        return cls(span, until - length, until, live)

    def moved(self, by: float) -> str:
        """The end of the window so many lengths later, as the address has it."""
        return utc(self.end + (self.end - self.start) * by)

    def beginning(self, start: datetime) -> "Window":
        """The same, but not before *start*."""
        return replace(self, start=max(self.start, start))


def _rounded_up(length: timedelta, step: timedelta) -> timedelta:
    return max(1, -(-length // step)) * step


@router.get("/timeline", scope=Scope.READ, include_in_schema=False)
def show(request: Request, span: str = "", end: str = "", group: str = "") -> Response:
    """Every run of a stretch of time."""
    now, executions = surface(request).clock(), surface(request).history.executions
    began = executions.began()
    asked = Window.asked(span, end, now, began)
    found = executions.timeline(asked.start, asked.end, group.strip() or None, MOST_RUNS)
    window = asked.beginning(found.start)
    rows = _rows(request, found.executions)
    return page(
        request,
        "timeline.html",
        window=window,
        spans=SPANS_SHOWN,
        young=began is not None and now - began < SPANS["1h"],
        group=group,
        rows=rows,
        truncated=found.truncated,
        most=MOST_RUNS,
        picture=timeline(rows, window.start, window.end, now) if rows else "",
    )


def _rows(request: Request, executions: Iterable[ExecutionOverview]) -> list[Row]:
    groups: dict[str | None, list[Stretch]] = {}
    for one in executions:
        if one.started_at is not None:
            groups.setdefault(one.group_name, []).append(_stretch(request, one, one.started_at))
    named = sorted(name for name in groups if name is not None)
    rows = [Row(name, url(request, "/groups", name), groups[name]) for name in named]
    return [*rows, Row(NO_GROUP, None, groups[None])] if None in groups else rows


def _stretch(request: Request, one: ExecutionOverview, begin: datetime) -> Stretch:
    return Stretch(
        name=one.external_id or one.workflow,
        state=one.state,
        begin=begin,
        end=one.finished_at,
        href=url(request, "/executions", one.id),
    )


def _moment(text: str) -> datetime:
    """The moment somebody has asked for; before the epoch nothing can have run."""
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        moment = datetime.min.replace(tzinfo=UTC)
    if moment < EPOCH:
        raise DefinitionError(
            f"end = {shown(text)}: must be a moment; for example 2026-01-05T10:00:00Z"
        )
    return moment
