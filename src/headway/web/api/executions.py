"""Executions: looked at, explained, cancelled and run again."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import Field

from headway.definition.runtime import NOT_GIVEN
from headway.domain.attempts import MOST_ATTEMPTS
from headway.domain.execution import ExecutionState
from headway.domain.views import ExecutionFilter
from headway.domain.work_queue import Source
from headway.web.api.fields import Body, IdInPath, Moment, Name, Paging
from headway.web.api.fields import Query as QueryModel
from headway.web.api.manifests import CancelRequest
from headway.web.api.models.executions import ExecutionAnswer, ExecutionItem, TimelineAnswer
from headway.web.api.models.overview import WhyAnswer
from headway.web.api.models.queue import CancelledAnswer, Queued
from headway.web.api.paging import Paged, paged
from headway.web.api.route import ApiRouter
from headway.web.context import operator, surface
from headway.web.routing import Scope

router = ApiRouter(tags=["executions"])

ONE = "/executions/{execution_id}"
HOUR = timedelta(hours=1)


class ExecutionQuery(Paging):
    """Which executions; what is left out does not restrict. Times are those of the dispatch."""

    state: list[ExecutionState] = Field(
        default=[], max_length=6, description="May be given several times"
    )
    manifest: Name | None = None
    group: Name | None = None
    workflow: Name | None = None
    source: Source | None = None
    since: Moment | None = None
    until: Moment | None = None


class TimelineQuery(QueryModel):
    """Which part of the past; without times the last hour."""

    start: Moment | None = None
    end: Moment | None = None
    group: Name | None = None
    limit: int = Field(default=500, ge=1, le=1000, examples=[500])


class RerunRequest(Body):
    """A run to repeat: with the input it had or another one."""

    input: Any = Field(
        default=None, description="Left out: the one it had", examples=[{"name": "users"}]
    )
    max_attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS, examples=[1])


@router.get("/executions", scope=Scope.READ)
def list_executions(
    request: Request, response: Response, query: Annotated[ExecutionQuery, Query()]
) -> Paged[ExecutionItem]:
    """Executions, live and finished, newest first."""
    values = query.model_dump(exclude={"limit", "cursor", "state"})
    wanted = ExecutionFilter(states=query.state, **values)
    page = surface(request).history.executions.page(wanted, query.cursor, query.limit)
    return paged(request, response, page, ExecutionItem.model_validate)


@router.get("/timeline", scope=Scope.READ)
def read_timeline(request: Request, query: Annotated[TimelineQuery, Query()]) -> TimelineAnswer:
    """What ran when."""
    asked = surface(request)
    end = query.end or asked.clock()
    start = query.start or end - HOUR
    found = asked.history.executions.timeline(start, end, query.group, query.limit)
    return TimelineAnswer.model_validate(found)


@router.get(ONE, scope=Scope.READ)
def read_execution(request: Request, execution_id: IdInPath) -> ExecutionAnswer:
    """Everything about an execution: its steps, input, output, failure and all attempts."""
    asked = surface(request)
    return ExecutionAnswer.of(asked.history.executions.detail(execution_id), asked.app.registry)


@router.get(f"{ONE}/why", scope=Scope.READ)
def explain_execution(request: Request, execution_id: IdInPath) -> WhyAnswer:
    """Why an execution has not started, or how it ended."""
    return WhyAnswer.model_validate(surface(request).explaining.why(execution=execution_id))


@router.post(f"{ONE}/cancel", scope=Scope.OPERATE)
def cancel_execution(
    request: Request, execution_id: IdInPath, wanted: CancelRequest | None = None
) -> CancelledAnswer:
    """Cancel an execution: what has not started never will, what runs is asked to stop."""
    reason = wanted.reason if wanted else None
    done = operator(request).cancel(execution=execution_id, reason=reason)
    return CancelledAnswer.model_validate(done)


@router.post(f"{ONE}/rerun", scope=Scope.OPERATE, status_code=202)
def rerun_execution(
    request: Request, execution_id: IdInPath, wanted: RerunRequest | None = None
) -> Queued:
    """Queue what an execution ran once more."""
    wanted = wanted or RerunRequest()
    input = wanted.input if "input" in wanted.model_fields_set else NOT_GIVEN
    entry = operator(request).rerun(execution_id, input, max_attempts=wanted.max_attempts)
    return Queued(entry_id=entry)
