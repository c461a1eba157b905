"""The right by which a stream of events was opened, as the broadcaster checks it again.

Called by the endpoints that stream. The check runs in the broadcaster's thread and reads the
tables of tokens and of ended sessions, or calls the authentication of the user's application.
"""

from collections.abc import Hashable

from fastapi import Request

from headway.web.broadcasting import Permit
from headway.web.routing import Scope
from headway.web.security.access import ASKING, Access, Asking


def permit_of(request: Request, scope: Scope) -> Permit:
    """Return the right of *request*, which the gate has let in, to a route of this *scope*.

    >>> permit_of(request, Scope.READ).holds()  # doctest: +SKIP
    True
    """
    access: Access = request.app.state.access
    asking: Asking = request.scope[ASKING]
    return Permit(_credential(asking), lambda: access.still_allows(request, asking, scope))


def _credential(asking: Asking) -> Hashable:
    if asking.token is not None:
        return "token", asking.token
    if asking.session is not None:
        return "session", asking.session.id
    # Two requests to a mounted application may come with different credentials of one user.
    return object()
