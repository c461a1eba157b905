"""Logging in and out."""

from http import HTTPStatus
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from headway.web.answering import sign_in_page
from headway.web.failures import Failure
from headway.web.rendering import page, see_other
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.access import ASKING, Access, Asking
from headway.web.security.auditing import note_login, note_refusal
from headway.web.security.bodies import form
from headway.web.security.cookies import forget_session, keep_session
from headway.web.security.remembering import end_session

WRONG_TOKEN = "This token is not known here, or is over."

router = ScopedRouter()


@router.get("/login", scope=Scope.PUBLIC, include_in_schema=False)
def login(request: Request) -> Response:
    """The form that asks for a token."""
    if ASKING in request.scope:
        return see_other(request, "/")
    return page(request, "login.html", refused="", next=_own_path(request.query_params.get("next")))


@router.post("/login", scope=Scope.PUBLIC, include_in_schema=False)
def log_in(request: Request) -> Response:
    """A session for whoever has a token."""
    access: Access = request.app.state.access
    session = access.login(request, form(request).get("token").strip())
    next_path = _own_path(form(request).get("next"))
    if session is None:
        note_refusal(request, Failure(HTTPStatus.UNAUTHORIZED, WRONG_TOKEN))
        return sign_in_page(request, WRONG_TOKEN, next_path)
    note_login(request, access, session)
    there = RedirectResponse(next_path, 303) if next_path else see_other(request, "/")
    return keep_session(there, request, access, session)


@router.post("/logout", scope=Scope.READ, include_in_schema=False)
def log_out(request: Request) -> Response:
    """The end of the session."""
    access: Access = request.app.state.access
    asking: Asking = request.scope[ASKING]
    if asking.session is not None:
        end_session(request, asking.session, access.address(request))
    return forget_session(see_other(request, "/login"), request, access)


def _own_path(path: str | None) -> str:
    """*path* if it leads to a page of ours; a link must not lead through here to elsewhere.

    >>> _own_path("/groups?x=1"), _own_path("//evil.com"), _own_path("https://evil.com")
    ('/groups?x=1', '', '')
    """
    path = path or ""
    parts = urlsplit(path) if path.isprintable() and path.isascii() else None
    own = parts and not parts.scheme and not parts.netloc and path.startswith("/")
    return path if own and "\\" not in path and not path.startswith("//") else ""
