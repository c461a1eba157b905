"""The cookie that keeps a session: for this application alone, out of reach of scripts."""

from fastapi import Request, Response

from headway.web.security.access import Access
from headway.web.security.sessions import LIFETIME, Session


def keep_session(
    response: Response, request: Request, access: Access, session: Session
) -> Response:
    """*response*, after which the browser is logged in.

    >>> keep_session(response, request, access, session)  # doctest: +SKIP
    """
    response.set_cookie(
        access.cookie_name(request),
        access.sessions.cookie(session),
        max_age=LIFETIME,
        path=_path(request, access),
        secure=_is_secure(request, access),
        httponly=True,
        samesite="strict",
    )
    return response


def forget_session(response: Response, request: Request, access: Access) -> Response:
    """*response*, after which the browser is logged out.

    >>> forget_session(response, request, access)  # doctest: +SKIP
    """
    response.delete_cookie(
        access.cookie_name(request),
        path=_path(request, access),
        secure=_is_secure(request, access),
        httponly=True,
        samesite="strict",
    )
    return response


def _path(request: Request, access: Access) -> str:
    # A name that begins with __Host- is only taken with this path.
    return "/" if access.secure else str(request.scope.get("root_path") or "/")


def _is_secure(request: Request, access: Access) -> bool:
    return access.secure or request.scope.get("scheme") == "https"
