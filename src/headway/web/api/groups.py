"""Groups: looked at, changed, triggered and cancelled; and the dependency graph."""

from typing import Annotated, Literal

from fastapi import Query, Request, Response
from pydantic import Field

from headway.domain.versions import version_of
from headway.domain.views import GroupDetail, GroupFilter
from headway.domain.work_queue import PRIORITY_MAX, PRIORITY_MIN
from headway.errors import DefinitionError
from headway.web.api.etags import IfMatch, expected_version
from headway.web.api.fields import Body, Name, NameInPath, Paging, Search
from headway.web.api.fields import Query as QueryModel
from headway.web.api.manifests import CancelRequest
from headway.web.api.models.groups import GraphAnswer, GroupAnswer, GroupItem
from headway.web.api.models.queue import CancelledAnswer, QueuedMany
from headway.web.api.paging import Paged, paged
from headway.web.api.route import ApiRouter
from headway.web.context import history, operator, surface
from headway.web.routing import Scope

router = ApiRouter(tags=["groups"])

ONE = "/groups/{name:name}"
LARGEST_CAP = 1_000_000


class GroupQuery(Paging):
    """Which groups; what is left out does not restrict."""

    search: Search = Field(default="", description="How the name begins")
    anywhere: bool = Field(default=False, description="Let `search` be any part of the name")
    enabled: bool | None = None


class GraphQuery(QueryModel):
    """Which part of the graph."""

    view: Literal["groups", "manifests"] = "groups"
    around: Name | None = Field(
        default=None, description="Only what this one depends on or leads to"
    )
    group: Name | None = Field(default=None, description="Of manifests, only those of this group")
    limit: int = Field(default=500, ge=1, le=500, examples=[500])


class GroupChange(Body):
    """What to change of a group; what is left out stays."""

    max_active_jobs: int | None = Field(
        default=None, ge=1, le=LARGEST_CAP, description="null: no cap", examples=[4]
    )
    priority: int = Field(default=0, ge=PRIORITY_MIN, le=PRIORITY_MAX, examples=[10])
    enabled: bool = Field(default=True, examples=[False])


@router.get("/groups", scope=Scope.READ)
def list_groups(
    request: Request, response: Response, query: Annotated[GroupQuery, Query()]
) -> Paged[GroupItem]:
    """Groups by name."""
    wanted = GroupFilter(**query.model_dump(exclude={"limit", "cursor"}))
    page = surface(request).history.groups.page(wanted, query.cursor, query.limit)
    return paged(request, response, page, GroupItem.model_validate)


@router.get("/graph", scope=Scope.READ)
def read_graph(request: Request, query: Annotated[GraphQuery, Query()]) -> GraphAnswer:
    """What runs after what: of groups, or of manifests."""
    asked = surface(request).history
    if query.view == "groups":
        found = asked.groups.graph(query.around, query.limit)
    else:
        found = asked.manifests.graph(query.group, query.around, query.limit)
    return GraphAnswer.model_validate(found)


@router.get(ONE, scope=Scope.READ)
def read_group(request: Request, response: Response, name: NameInPath) -> GroupAnswer:
    """Everything about a group, with who holds its slots."""
    return _answered(request, response, name)


@router.patch(ONE, scope=Scope.OPERATE)
def change_group(
    request: Request,
    response: Response,
    name: NameInPath,
    change: GroupChange,
    if_match: IfMatch = None,
) -> GroupAnswer:
    """Change a group's cap, priority or switch, across redeployments."""
    version = expected_version(if_match)
    values = change.model_dump(include=change.model_fields_set)
    if not values:
        raise DefinitionError(f'group {name!r}: nothing to change; for example {{"priority": 10}}')
    operator(request).set_group(name, **values, expected=version)
    return _answered(request, response, name)


@router.post(f"{ONE}/trigger", scope=Scope.OPERATE, status_code=202)
def trigger_group(request: Request, name: NameInPath) -> QueuedMany:
    """Queue a run of every enabled manifest of a group, dependents aside."""
    return QueuedMany(queued=operator(request).trigger_group(name))


@router.post(f"{ONE}/cancel", scope=Scope.OPERATE)
def cancel_group(
    request: Request, name: NameInPath, wanted: CancelRequest | None = None
) -> CancelledAnswer:
    """Cancel everything of a group that is queued, pending or running."""
    reason = wanted.reason if wanted else None
    return CancelledAnswer.model_validate(operator(request).cancel(group=name, reason=reason))


def _answered(request: Request, response: Response, name: str) -> GroupAnswer:
    found: GroupDetail = history(request).groups.detail(name)
    response.headers["etag"] = version_of(found.updated_at)
    return GroupAnswer.of(found)
