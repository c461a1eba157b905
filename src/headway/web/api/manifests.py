"""Manifests: looked at, explained, triggered, switched on and off."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import Field

from headway.definition.runtime import NOT_GIVEN
from headway.domain.attempts import MOST_ATTEMPTS
from headway.domain.versions import version_of
from headway.domain.views import ExecutionFilter, ManifestDetail, ManifestFilter
from headway.domain.work_queue import LONGEST_DELAY
from headway.web.api.etags import IfMatch, expected_version
from headway.web.api.fields import Body, Name, NameInPath, Paging, Search, Text
from headway.web.api.models.executions import ExecutionItem
from headway.web.api.models.manifests import (
    ComingRunItem,
    ComingRuns,
    InputSchema,
    ManifestAnswer,
    ManifestItem,
)
from headway.web.api.models.overview import WhyAnswer
from headway.web.api.models.queue import CancelledAnswer, Queued
from headway.web.api.paging import Paged, paged
from headway.web.api.route import ApiRouter
from headway.web.api.workflows import input_schema
from headway.web.context import history, operator, surface
from headway.web.routing import Scope

router = ApiRouter(tags=["manifests"])

ONE = "/manifests/{external_id:name}"


class ManifestQuery(Paging):
    """Which manifests; what is left out does not restrict."""

    search: Search = Field(default="", description="How the external id begins")
    anywhere: bool = Field(default=False, description="Let `search` be any part of the external id")
    group: Name | None = None
    workflow: Name | None = None
    enabled: bool | None = None
    kind: Literal["interval", "cron", "once", "none", "dependent", "dormant_dependent"] | None = (
        None
    )
    dead_lettered: bool = False


class TriggerRequest(Body):
    """A run to queue: with the manifest's own input or another one, now or later."""

    input: Any = Field(
        default=None, description="Left out: the manifest's own", examples=[{"name": "users"}]
    )
    delay_seconds: float = Field(default=0, ge=0, le=LONGEST_DELAY.total_seconds(), examples=[60])
    max_attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS, examples=[1])


class ManifestChange(Body):
    """What to change of a manifest."""

    enabled: bool = Field(examples=[False])


class CancelRequest(Body):
    """Why something is cancelled."""

    reason: Text | None = Field(default=None, examples=["wrong day"])


@router.get("/manifests", scope=Scope.READ)
def list_manifests(
    request: Request, response: Response, query: Annotated[ManifestQuery, Query()]
) -> Paged[ManifestItem]:
    """Manifests by external id."""
    wanted = ManifestFilter(**query.model_dump(exclude={"limit", "cursor"}))
    page = surface(request).history.manifests.page(wanted, query.cursor, query.limit)
    return paged(request, response, page, ManifestItem.model_validate)


@router.get(ONE, scope=Scope.READ)
def read_manifest(request: Request, response: Response, external_id: NameInPath) -> ManifestAnswer:
    """Everything about a manifest."""
    return _answered(request, response, _found(request, external_id))


@router.patch(ONE, scope=Scope.OPERATE)
def change_manifest(
    request: Request,
    response: Response,
    external_id: NameInPath,
    change: ManifestChange,
    if_match: IfMatch = None,
) -> ManifestAnswer:
    """Switch a manifest on or off, across redeployments."""
    version, acting = expected_version(if_match), operator(request)
    switch = acting.enable if change.enabled else acting.disable
    switch(external_id, expected=version)
    return _answered(request, response, _found(request, external_id))


@router.get(f"{ONE}/why", scope=Scope.READ)
def explain_manifest(request: Request, external_id: NameInPath) -> WhyAnswer:
    """Why a manifest is not running: every gate before a run, passed or not."""
    return WhyAnswer.model_validate(surface(request).explaining.why(external_id))


@router.get(f"{ONE}/executions", scope=Scope.READ)
def list_executions_of_manifest(
    request: Request,
    response: Response,
    external_id: NameInPath,
    query: Annotated[Paging, Query()],
) -> Paged[ExecutionItem]:
    """The runs of a manifest, newest first."""
    _found(request, external_id)
    page = surface(request).history.executions.page(
        ExecutionFilter(manifest=external_id), query.cursor, query.limit
    )
    return paged(request, response, page, ExecutionItem.model_validate)


@router.get(f"{ONE}/next-runs", scope=Scope.READ)
def list_next_runs_of_manifest(request: Request, external_id: NameInPath) -> ComingRuns:
    """The next runs of a manifest, as far as time alone decides."""
    coming = _found(request, external_id).next_runs
    return ComingRuns(items=[ComingRunItem.model_validate(run) for run in coming])


@router.get(f"{ONE}/input-schema", scope=Scope.READ)
def read_input_schema_of_manifest(request: Request, external_id: NameInPath) -> InputSchema:
    """The JSON schema of the input a manifest takes."""
    return input_schema(request, _found(request, external_id).overview.workflow)


@router.post(f"{ONE}/trigger", scope=Scope.OPERATE, status_code=202)
def trigger_manifest(
    request: Request, external_id: NameInPath, wanted: TriggerRequest | None = None
) -> Queued:
    """Queue a run of a manifest, any number of times."""
    wanted = wanted or TriggerRequest()
    entry = operator(request).trigger(
        external_id,
        wanted.input if "input" in wanted.model_fields_set else NOT_GIVEN,
        delay=timedelta(seconds=wanted.delay_seconds) if wanted.delay_seconds else None,
        max_attempts=wanted.max_attempts,
    )
    return Queued(entry_id=entry)


@router.post(f"{ONE}/cancel", scope=Scope.OPERATE)
def cancel_manifest(
    request: Request, external_id: NameInPath, wanted: CancelRequest | None = None
) -> CancelledAnswer:
    """Cancel everything of a manifest that is queued, pending or running."""
    reason = wanted.reason if wanted else None
    return CancelledAnswer.model_validate(operator(request).cancel(external_id, reason=reason))


def _found(request: Request, external_id: str) -> ManifestDetail:
    return history(request).manifests.detail(external_id)


def _answered(request: Request, response: Response, found: ManifestDetail) -> ManifestAnswer:
    response.headers["etag"] = version_of(found.definition.updated_at)
    return ManifestAnswer.of(found, surface(request).app.registry)
