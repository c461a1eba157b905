"""The federation: where was I, over all deployments; requests, peers, and what people note."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from fastapi import Request, Response

from headway.domain.azolla.artifacts import (
    BlockerKind,
    CaptureStatus,
    ObjectiveStatus,
    PauseReason,
)
from headway.domain.azolla.entries import TEXT_LIMIT, TITLE_LIMIT
from headway.errors import HeadwayError
from headway.federation.known import known_peers
from headway.web.context import operator, surface
from headway.web.rendering import page, see_other
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.bodies import form
from headway.web.telling import tell

router = ScopedRouter(prefix="/azolla")

SHOWN_MATTERS = 100
Word = TypeVar("Word", bound=StrEnum)


@router.get("", scope=Scope.READ, include_in_schema=False)
def session_manifest(request: Request, event: str = "") -> Response:
    """The operator's page: the newest, or the one of a request."""
    history = surface(request).history.azolla
    session = history.session(event or None)
    return page(
        request,
        "azolla.html",
        session=session,
        event=event,
        building=history.building(),
        parked=history.any_parked(),
        most=SHOWN_MATTERS,
    )


@router.post("/request", scope=Scope.OPERATE, include_in_schema=False)
def request_manifest(request: Request) -> Response:
    """Ask all deployments."""
    return _after(
        request,
        "/azolla",
        lambda: operator(request).request_manifest(),
        "All deployments are being asked; the page appears here.",
    )


@router.get("/events", scope=Scope.READ, include_in_schema=False)
def events(request: Request, cursor: str = "", state: str = "") -> Response:
    """What was asked for, and what has become of it."""
    history = surface(request).history.azolla
    found = history.events(cursor, parked=state == "parked")
    return page(
        request, "azolla_events.html", events=found, state=state, building=history.building()
    )


@router.post("/events/{event_id:name}/unpark", scope=Scope.OPERATE, include_in_schema=False)
def unpark(request: Request, event_id: str) -> Response:
    """Put a request that failed too often back into the line."""
    return _after(
        request,
        "/azolla/events",
        lambda: operator(request).azolla.unpark(event_id),
        f"{event_id} is back in the line.",
    )


@router.get("/peers", scope=Scope.READ, include_in_schema=False)
def peers(request: Request) -> Response:
    """Whom this deployment knows, and what each said when it was asked last."""
    asked = surface(request)
    session = asked.history.azolla.session()
    said = {one.azolla_id: one for one in session.said} if session else {}
    return page(
        request, "azolla_peers.html", known=known_peers(asked.app), session=session, said=said
    )


@router.get("/captures", scope=Scope.READ, include_in_schema=False)
def captures(request: Request, cursor: str = "", status: str = "PENDING") -> Response:
    """Notes that wait to be sorted, or all."""
    wanted = _word(CaptureStatus, status)
    found = surface(request).history.azolla.captures(cursor, status=wanted)
    return page(
        request, "azolla_captures.html", captures=found, shown=wanted or "all", limit=TEXT_LIMIT
    )


@router.post("/captures", scope=Scope.OPERATE, include_in_schema=False)
def add_capture(request: Request) -> Response:
    """Leave a note."""
    text = form(request).get("text")
    return _after(
        request,
        "/azolla/captures",
        lambda: operator(request).azolla.capture(text),
        "The note is kept until somebody has sorted it.",
    )


@router.post("/captures/process", scope=Scope.OPERATE, include_in_schema=False)
def process_captures(request: Request) -> Response:
    """Note that captures are dealt with."""
    chosen = form(request).all("capture")
    return _after(
        request,
        "/azolla/captures",
        lambda: operator(request).azolla.mark_processed(*chosen),
        f"{len(chosen)} sorted." if chosen else "Nothing was chosen.",
    )


@router.get("/objectives", scope=Scope.READ, include_in_schema=False)
def objectives(request: Request, cursor: str = "", status: str = "") -> Response:
    """What is to be reached: open ones, of one status, or all."""
    wanted = _word(ObjectiveStatus, status)
    found = surface(request).history.azolla.objectives(cursor, status=wanted, done=status == "all")
    return page(
        request,
        "azolla_objectives.html",
        objectives=found,
        shown=status,
        statuses=list(ObjectiveStatus),
        kinds=list(BlockerKind),
        limit=TITLE_LIMIT,
    )


@router.post("/objectives", scope=Scope.OPERATE, include_in_schema=False)
def add_objective(request: Request) -> Response:
    """Add something to be reached."""
    sent = form(request)
    return _after(
        request,
        "/azolla/objectives",
        lambda: operator(request).azolla.objective(
            sent.get("title"),
            acceptance_criteria=sent.get("acceptance_criteria"),
            importance=_degree(sent.get("importance")),
            urgency=_degree(sent.get("urgency")),
        ),
        "The objective was added.",
    )


@router.post("/objectives/{objective_id:name}", scope=Scope.OPERATE, include_in_schema=False)
def change_objective(request: Request, objective_id: str) -> Response:
    """Change the status or the degrees of an objective."""
    sent = form(request)
    values: dict[str, Any] = {}
    if status := sent.get("status"):
        values["status"] = status
    for name in ("urgency", "importance"):
        if sent.get(name):
            values[name] = _degree(sent.get(name))
    return _after(
        request,
        "/azolla/objectives",
        lambda: operator(request).azolla.update(objective_id, **values),
        "The objective was changed.",
    )


@router.post("/objectives/{objective_id:name}/block", scope=Scope.OPERATE, include_in_schema=False)
def block_objective(request: Request, objective_id: str) -> Response:
    """Note what an objective waits for."""
    sent = form(request)
    return _after(
        request,
        "/azolla/objectives",
        lambda: operator(request).azolla.block(
            objective_id, sent.get("kind"), sent.get("description")
        ),
        "It is blocked until that is resolved.",
    )


@router.post("/blockers/{blocker_id:name}/resolve", scope=Scope.OPERATE, include_in_schema=False)
def resolve_blocker(request: Request, blocker_id: str) -> Response:
    """Note that a blocker is gone."""
    return _after(
        request,
        "/azolla/objectives",
        lambda: operator(request).azolla.resolve(blocker_id),
        "The blocker is resolved.",
    )


@router.get("/pause-states", scope=Scope.READ, include_in_schema=False)
def pause_states(request: Request, cursor: str = "", reason: str = "") -> Response:
    """Why work rests here, and what to do about it."""
    wanted = _word(PauseReason, reason)
    found = surface(request).history.azolla.pause_states(cursor, reason=wanted)
    return page(
        request,
        "azolla_pauses.html",
        pauses=found,
        reason=wanted or "",
        reasons=list(PauseReason),
    )


def _after(request: Request, path: str, act: Callable[[], object], said: str) -> Response:
    """The page to see after *act*, with what came of it."""
    try:
        act()
    except HeadwayError as error:
        return tell(request, see_other(request, path), str(error), "error")
    return tell(request, see_other(request, path), said)


def _word(kind: type[Word], value: str) -> Word | None:
    return kind(value) if value in set(kind) else None


def _degree(value: str) -> int | str:
    """A number if it is one; what else it is, is for the rule to say."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 4 else value or 0
