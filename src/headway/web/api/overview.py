"""How a deployment stands: what waits, runs and needs attention."""

from datetime import timedelta
from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import Field

from headway.web.api.fields import Query as QueryModel
from headway.web.api.models.overview import (
    AttentionItem,
    NextRunItem,
    OverviewAnswer,
    SummaryAnswer,
    ThroughputAnswer,
)
from headway.web.api.route import ApiRouter
from headway.web.context import surface
from headway.web.routing import Scope

router = ApiRouter(tags=["overview"])

SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


class OverviewQuery(QueryModel):
    """How much of what is coming and of what needs attention."""

    limit: int = Field(default=10, ge=1, le=100, examples=[10])


class ThroughputQuery(QueryModel):
    """How far back."""

    span: Literal["hour", "day", "week"] = "hour"


@router.get("/overview", scope=Scope.READ)
def read_overview(request: Request, query: Annotated[OverviewQuery, Query()]) -> OverviewAnswer:
    """Counts and rates, the next runs, and what needs attention."""
    overview = surface(request).history.overview
    return OverviewAnswer(
        summary=SummaryAnswer.model_validate(overview.summary()),
        next_runs=[NextRunItem.model_validate(run) for run in overview.next_runs(query.limit)],
        attention=[AttentionItem.model_validate(one) for one in overview.attention(query.limit)],
    )


@router.get("/throughput", scope=Scope.READ)
def read_throughput(
    request: Request, query: Annotated[ThroughputQuery, Query()]
) -> ThroughputAnswer:
    """What ended when: the points of a chart."""
    found = surface(request).history.overview.throughput(SPANS[query.span])
    return ThroughputAnswer.model_validate(found)
