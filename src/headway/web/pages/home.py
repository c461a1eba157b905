"""Home: how the whole deployment stands, on one page."""

from datetime import timedelta

from fastapi import Request, Response
from markupsafe import Markup

from headway.domain.execution import ExecutionState
from headway.domain.views import Attention, AttentionKind, ExecutionFilter, Throughput
from headway.web.context import surface
from headway.web.drawing.throughput import Tally, throughput_chart
from headway.web.rendering import page, url
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter()

SPANS = {"hour": timedelta(hours=1), "week": timedelta(days=7)}
FEW = 8
RUNNING = ExecutionFilter(states=[ExecutionState.IN_PROGRESS])


@router.get("/", scope=Scope.READ, include_in_schema=False)
def home(request: Request, span: str = "hour") -> Response:
    """What waits, runs and went wrong, what comes next, and what a person should look at."""
    history = surface(request).history
    span = span if span in SPANS else "hour"
    attention = history.overview.attention(FEW)
    return page(
        request,
        "home.html",
        empty=not history.manifests.page(limit=1).items,
        summary=history.overview.summary(),
        chart=_chart(history.overview.throughput(SPANS[span]), span),
        span=span,
        next_runs=history.overview.next_runs(FEW),
        attention=[(one, where(request, one)) for one in attention],
        running=history.executions.page(RUNNING, limit=FEW),
    )


def _chart(found: Throughput, span: str) -> Markup:
    tallies = [Tally(one.start, one.completed, one.failed) for one in found.points]
    return throughput_chart(tallies, found.step, f"What ended during the last {span}")


def where(request: Request, found: Attention) -> str:
    """The page on which something can be done about *found*.

    >>> where(request, attention)  # doctest: +SKIP
    '/manifests/old-ledger'
    """
    match found.kind:
        case AttentionKind.DEAD_LETTER | AttentionKind.FAILING:
            return url(request, "/manifests", found.subject)
        case AttentionKind.DISABLED_GROUP:
            return url(request, "/groups", found.subject)
        case AttentionKind.UNKNOWN_WORKFLOW:
            return url(request, "/queue")
        case _:
            return url(request, "/servers")
