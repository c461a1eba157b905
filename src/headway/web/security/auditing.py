"""Who came and who was refused, in the audit.

Refusals are caused by others at will: of each of them only a few are noted at a time.
"""

import logging
from http import HTTPStatus

from fastapi import Request

from headway.domain.actions import Action
from headway.errors import DatabaseLost
from headway.store import audit
from headway.store.engine import TRANSIENT
from headway.web.context import known_identity, surface
from headway.web.failures import Failure
from headway.web.paths import ENCODED_SLASH, route_path
from headway.web.security.access import Access
from headway.web.security.sessions import Session

logger = logging.getLogger("headway.web")

BY_KEY, BY_TOKEN = "the printed address", "a token"


def note_login(request: Request, access: Access, session: Session) -> None:
    """Somebody has logged in.

    >>> note_login(request, access, session)  # doctest: +SKIP
    """
    facts = {
        "address": access.address(request),
        "with": BY_KEY if session.token is None else BY_TOKEN,
    }
    with surface(request).store.writing() as tx:
        audit.note(tx, session.name, Action.LOG_IN, "dashboard", facts)


def note_refusal(request: Request, failure: Failure) -> None:
    """Somebody known was refused something, or somebody unknown has tried to be known.

    >>> note_refusal(request, failure)  # doctest: +SKIP
    """
    access: Access = request.app.state.access
    known, address = known_identity(request), access.address(request)
    if not _is_worth_noting(request, failure) or access.notes.wait(address, take=1):
        return
    facts = {"address": address, "reason": failure.detail}
    path = route_path(request.scope).replace(ENCODED_SLASH, "/")
    subject = f"{request.method} {path}"
    try:
        with surface(request).store.writing() as tx:
            audit.denied(tx, known.name if known else "anonymous", subject, facts)
    except (*TRANSIENT, DatabaseLost) as error:
        logger.warning("the refusal of %s is not in the audit: %s", subject, error)


def _is_worth_noting(request: Request, failure: Failure) -> bool:
    if failure.status is HTTPStatus.FORBIDDEN:
        return True
    tried = "authorization" in request.headers or request.method == "POST"
    return failure.status is HTTPStatus.UNAUTHORIZED and tried
