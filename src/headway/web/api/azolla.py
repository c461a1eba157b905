"""The federation: the operator's page, requests, peers, captures, objectives, pause states."""

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field
from starlette.exceptions import HTTPException

from headway.domain.azolla.artifacts import (
    BlockerKind,
    CaptureStatus,
    Degree,
    Objective,
    ObjectiveStatus,
    PauseReason,
)
from headway.domain.azolla.entries import ID_LIMIT, TEXT_LIMIT, TITLE_LIMIT
from headway.domain.versions import version_of
from headway.errors import DefinitionError
from headway.federation.known import known_peers
from headway.history import Paused
from headway.web.api.documented import answers_of
from headway.web.api.etags import IfMatch, expected_version
from headway.web.api.fields import Body, Name, Paging
from headway.web.api.fields import Query as Parameters
from headway.web.api.models.azolla import (
    BlockerItem,
    CaptureItem,
    EventItem,
    ObjectiveItem,
    PauseItem,
    PeersAnswer,
    ProcessedAnswer,
    RequestedAnswer,
    ResolvedAnswer,
    SessionAnswer,
)
from headway.web.api.paging import Paged, paged
from headway.web.api.route import ApiRouter
from headway.web.context import history, operator, surface
from headway.web.routing import Scope

router = ApiRouter(prefix="/azolla", tags=["federation"])

MOST_MATTERS = 200
Id = Annotated[str, Path(min_length=1, max_length=ID_LIMIT, examples=["objective-3f9a1c2b5d6e"])]
Written = Annotated[str, Field(min_length=1, max_length=TEXT_LIMIT)]
Title = Annotated[str, Field(min_length=1, max_length=TITLE_LIMIT, examples=["clean up staging"])]


class SessionQuery(Parameters):
    """Which page; without an event the newest."""

    event: Name | None = None


class EventQuery(Paging):
    """Which requests."""

    parked: bool = Field(default=False, examples=[False], description="Only those that wait")


class CaptureQuery(Paging):
    """Which captures."""

    status: CaptureStatus | None = None


class ObjectiveQuery(Paging):
    """Which objectives."""

    status: ObjectiveStatus | None = None


class PauseQuery(Paging):
    """Which pause states."""

    reason: PauseReason | None = None


class CaptureRequest(Body):
    """A note to be sorted later; without a source it comes from whoever sends it."""

    text: Written = Field(examples=["orders of Monday look too low"])
    source: Title | None = Field(default=None, examples=["standup"])


class ObjectiveRequest(Body):
    """Something to be reached; urgency and importance from 0 to 4, 4 is the most."""

    title: Title
    acceptance_criteria: str = Field(default="", max_length=TEXT_LIMIT)
    importance: Degree = Field(default=0, examples=[2])
    urgency: Degree = Field(default=0, examples=[3])


class ObjectiveChange(Body):
    """What is left out stays."""

    title: Title | None = None
    acceptance_criteria: str | None = Field(default=None, max_length=TEXT_LIMIT)
    status: Annotated[ObjectiveStatus, Field(strict=False)] | None = None
    importance: Degree | None = None
    urgency: Degree | None = None


class BlockerRequest(Body):
    """What an objective waits for."""

    kind: Annotated[BlockerKind, Field(strict=False)]
    description: Written = Field(examples=["which tables may go?"])


# Like an address with a name in it, there may be nothing behind this one.
@router.get("/session-manifest", scope=Scope.READ, responses=answers_of("GET", "/{event}"))
def read_session_manifest(
    request: Request, query: Annotated[SessionQuery, Query()]
) -> SessionAnswer:
    """Where was I? The newest page, or that of a request, with who answered and who did not."""
    found = history(request).azolla.session(query.event)
    if found is None:
        raise HTTPException(404, "there is no such page; ask for one: POST to this address")
    return SessionAnswer.of(found, MOST_MATTERS)


@router.post("/session-manifest", scope=Scope.OPERATE, status_code=202)
def request_session_manifest(request: Request) -> RequestedAnswer:
    """Ask all deployments; a running headway builds the page."""
    return RequestedAnswer(event_id=operator(request).request_manifest())


@router.get("/events", scope=Scope.READ)
def list_requests(
    request: Request, response: Response, query: Annotated[EventQuery, Query()]
) -> Paged[EventItem]:
    """Requests and what has become of them, newest first."""
    read = history(request).azolla
    page = read.events(query.cursor, query.limit, parked=query.parked)
    return paged(request, response, page, EventItem.of)


@router.get("/events/{event_id:name}", scope=Scope.READ)
def read_request(request: Request, event_id: Id) -> EventItem:
    """One request."""
    found = history(request).azolla.event(event_id)
    if found is None:
        raise HTTPException(404, f"event {event_id!r}: there is none of this id")
    return EventItem.of(found)


@router.post("/events/{event_id:name}/unpark", scope=Scope.OPERATE)
def unpark_request(request: Request, event_id: Id) -> EventItem:
    """Put a request that failed too often back into the line, with all its attempts."""
    if read_request(request, event_id).parked_at is None:
        raise HTTPException(409, f"event {event_id!r} is not parked")
    operator(request).azolla.unpark(event_id)
    return read_request(request, event_id)


@router.get("/peers", scope=Scope.READ)
def list_peers(request: Request) -> PeersAnswer:
    """Whom this deployment knows, and what each said when it was asked last."""
    return PeersAnswer.of(known_peers(surface(request).app), history(request).azolla.session())


@router.get("/captures", scope=Scope.READ)
def list_captures(
    request: Request, response: Response, query: Annotated[CaptureQuery, Query()]
) -> Paged[CaptureItem]:
    """Notes of people, newest first."""
    read = history(request).azolla
    page = read.captures(query.cursor, query.limit, status=query.status)
    return paged(request, response, page, CaptureItem.model_validate)


@router.post("/captures", scope=Scope.OPERATE, status_code=201)
def add_capture(request: Request, wanted: CaptureRequest) -> CaptureItem:
    """Leave a note to be sorted later."""
    made = operator(request).azolla.capture(wanted.text, source=wanted.source)
    return CaptureItem.model_validate(made)


@router.post("/captures/{capture_id:name}/process", scope=Scope.OPERATE)
def process_capture(request: Request, capture_id: Id) -> ProcessedAnswer:
    """Note that a capture is dealt with."""
    if not operator(request).azolla.mark_processed(capture_id):
        raise HTTPException(404, f"capture {capture_id!r}: none of this id waits")
    return ProcessedAnswer(capture_id=capture_id)


@router.get("/objectives", scope=Scope.READ)
def list_objectives(
    request: Request, response: Response, query: Annotated[ObjectiveQuery, Query()]
) -> Paged[ObjectiveItem]:
    """What is to be reached, touched last first."""
    read = history(request).azolla
    page = read.objectives(query.cursor, query.limit, status=query.status)
    return paged(request, response, page, ObjectiveItem.model_validate)


@router.post("/objectives", scope=Scope.OPERATE, status_code=201)
def add_objective(request: Request, wanted: ObjectiveRequest) -> ObjectiveItem:
    """Add something to be reached."""
    made = operator(request).azolla.objective(**wanted.model_dump())
    return ObjectiveItem.model_validate(made)


@router.get("/objectives/{objective_id:name}", scope=Scope.READ)
def read_objective(request: Request, response: Response, objective_id: Id) -> ObjectiveItem:
    """One objective with its blockers."""
    return _tagged(response, _found(request, objective_id))


@router.patch("/objectives/{objective_id:name}", scope=Scope.OPERATE)
def change_objective(
    request: Request,
    response: Response,
    objective_id: Id,
    change: ObjectiveChange,
    if_match: IfMatch = None,
) -> ObjectiveItem:
    """Change an objective, closing it by `"status": "DONE"`."""
    version = expected_version(if_match)
    values = change.model_dump(exclude_none=True)
    if not values:
        raise DefinitionError('nothing to change; for example {"urgency": 3}')
    _found(request, objective_id)
    changed = operator(request).azolla.update(objective_id, expected=version, **values)
    return _tagged(response, changed)


@router.post("/objectives/{objective_id:name}/blockers", scope=Scope.OPERATE, status_code=201)
def block_objective(request: Request, objective_id: Id, wanted: BlockerRequest) -> BlockerItem:
    """Note what an objective waits for; it is blocked until that is resolved."""
    _found(request, objective_id)
    made = operator(request).azolla.block(objective_id, wanted.kind, wanted.description)
    return BlockerItem.model_validate(made)


@router.post("/blockers/{blocker_id:name}/resolve", scope=Scope.OPERATE)
def resolve_blocker(request: Request, blocker_id: Id) -> ResolvedAnswer:
    """Note that a blocker is gone."""
    try:
        operator(request).azolla.resolve(blocker_id)
    except DefinitionError as error:
        raise HTTPException(404, str(error)) from error
    return ResolvedAnswer(blocker_id=blocker_id)


@router.get("/pause-states", scope=Scope.READ)
def list_pause_states(
    request: Request, response: Response, query: Annotated[PauseQuery, Query()]
) -> Paged[PauseItem]:
    """Why work rests here, newest first."""
    read = history(request).azolla
    page = read.pause_states(query.cursor, query.limit, reason=query.reason)
    return paged(request, response, page, _paused)


def _paused(one: Paused) -> PauseItem:
    return PauseItem(pause_id=one.pause_id, **one.state.model_dump())


def _found(request: Request, objective_id: str) -> Objective:
    found = history(request).azolla.objective(objective_id)
    if found is None:
        raise HTTPException(404, f"objective {objective_id!r}: there is none of this id")
    return found


def _tagged(response: Response, objective: Objective) -> ObjectiveItem:
    response.headers["etag"] = version_of(objective.updated_at)
    return ObjectiveItem.model_validate(objective)
