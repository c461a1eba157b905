"""The work queue: looked at, explained, cancelled, and added to."""

from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import Field

from headway.definition.masking import shown_input
from headway.domain.attempts import MOST_ATTEMPTS
from headway.domain.views import QueueFilter
from headway.domain.work_queue import PRIORITY_MAX, PRIORITY_MIN, Source
from headway.web.api.encoding import portable
from headway.web.api.fields import Body, IdInPath, Name, Paging
from headway.web.api.manifests import CancelRequest
from headway.web.api.models.overview import WhyAnswer
from headway.web.api.models.queue import CancelledAnswer, EntryAnswer, EntryItem, Queued
from headway.web.api.paging import Paged, paged
from headway.web.api.route import ApiRouter
from headway.web.context import operator, surface
from headway.web.routing import Scope

router = ApiRouter(tags=["queue"])

ONE = "/queue/{entry_id}"


class QueueQuery(Paging):
    """Which entries; what is left out does not restrict."""

    group: Name | None = None
    source: Source | None = None
    manifest: Name | None = None


class EnqueueRequest(Body):
    """A single run of a workflow without any manifest; the workflow has to be registered."""

    workflow: Name = Field(examples=["load"])
    input: Any = Field(default=None, examples=[{"name": "users"}])
    priority: int = Field(default=0, ge=PRIORITY_MIN, le=PRIORITY_MAX, examples=[0])
    max_attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS, examples=[1])


@router.get("/queue", scope=Scope.READ)
def list_queue(
    request: Request, response: Response, query: Annotated[QueueQuery, Query()]
) -> Paged[EntryItem]:
    """What waits to be dispatched, in the order in which it would start."""
    wanted = QueueFilter(**query.model_dump(exclude={"limit", "cursor"}))
    page = surface(request).history.queue.page(wanted, query.cursor, query.limit)
    return paged(request, response, page, EntryItem.model_validate)


@router.post("/queue", scope=Scope.OPERATE, status_code=202)
def enqueue(request: Request, wanted: EnqueueRequest) -> Queued:
    """Queue a single run of a workflow that this process knows."""
    entry = operator(request).enqueue(
        wanted.workflow,
        wanted.input,
        priority=wanted.priority,
        max_attempts=wanted.max_attempts,
    )
    return Queued(entry_id=entry)


@router.get(ONE, scope=Scope.READ)
def read_entry(request: Request, entry_id: IdInPath) -> EntryAnswer:
    """An entry that waits, with its input."""
    asked = surface(request)
    found = asked.history.queue.detail(entry_id)
    values = {name: getattr(found, name) for name in EntryAnswer.model_fields}
    values["input"] = portable(shown_input(asked.app.registry, found.workflow, found.input))
    return EntryAnswer(**values)


@router.get(f"{ONE}/why", scope=Scope.READ)
def explain_entry(request: Request, entry_id: IdInPath) -> WhyAnswer:
    """Why an entry is not dispatched yet, or what became of it."""
    return WhyAnswer.model_validate(surface(request).explaining.why(entry=entry_id))


@router.post(f"{ONE}/cancel", scope=Scope.OPERATE)
def cancel_entry(
    request: Request, entry_id: IdInPath, wanted: CancelRequest | None = None
) -> CancelledAnswer:
    """Cancel an entry, or what was dispatched for it."""
    reason = wanted.reason if wanted else None
    return CancelledAnswer.model_validate(operator(request).cancel(entry=entry_id, reason=reason))
