"""The gate in front of every route: whoever is not known gets no further than what is public."""

from http import HTTPStatus

from anyio import to_thread
from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Connection

from headway.web.answering import sign_in_page
from headway.web.connections import has_two_lengths
from headway.web.context import IDENTITY
from headway.web.failures import Forbidden, TooMany, Unauthenticated
from headway.web.paths import keep_encoded_slashes, route_path
from headway.web.rendering import CSRF, see_other
from headway.web.routing import Scope, ScopedRoute
from headway.web.security.access import ASKING, Access, Asking
from headway.web.security.auditing import note_login
from headway.web.security.bodies import UNSAFE, form
from headway.web.security.cookies import keep_session
from headway.web.security.origins import is_same_origin

LOGIN = "/login"
CSRF_FIELD = "csrf_token"
CSRF_HEADER = "x-csrf-token"
LONGEST_HEAD = 32 * 1024
UNKNOWN_HOST = "this host is not served here; dashboard_allowed_hosts lists those that are"
USED_KEY = (
    "This address has been used, or is older than the process. Start the process again for a new "
    "one, or log in with a token."
)


class KnownHosts:
    """Answers only to names this application has, to paths of its own, and to short heads."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        status, told = self._objection(scope) if scope["type"] == "http" else (None, "")
        if status is None:
            await self._app(scope, receive, send)
        else:
            # What follows such a head on the connection cannot be told apart from a request.
            close = {"connection": "close"}
            await Response(told, status, close, media_type="text/plain")(scope, receive, send)

    def _objection(self, scope: Connection) -> tuple[HTTPStatus | None, str]:
        heads = scope["headers"]
        size = sum(len(name) + len(value) for name, value in heads)
        if size + len(scope["path"]) + len(scope["query_string"]) > LONGEST_HEAD:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "address and headers are too long"
        hosts = [value.decode("latin-1") for name, value in heads if name == b"host"]
        if len(hosts) != 1 or not self._access.hosts.know(hosts[0]):
            return HTTPStatus.BAD_REQUEST, UNKNOWN_HOST
        if has_two_lengths(heads):
            return HTTPStatus.BAD_REQUEST, "send Content-Length or Transfer-Encoding, not both"
        if not scope["path"].startswith("/"):
            return HTTPStatus.BAD_REQUEST, "the path does not begin with a slash"
        return None, ""


class Gate:
    """Knows who asks before any route is looked for, so that a forgotten one is closed too."""

    def __init__(self, app: ASGIApp, access: Access, routes: list[ScopedRoute]) -> None:
        self._app = app
        self._access = access
        self._public = [route.path_regex for route in routes if route.scope is Scope.PUBLIC]

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        keep_encoded_slashes(scope)
        request = Request(scope, receive)
        if self._is_open(request):  # needs no thread: those may all wait for the database
            await self._app(scope, receive, send)
            return
        refusal = await to_thread.run_sync(self._refusal, request)
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        """The answer to whoever gets no further; what is known of the others goes with them."""
        if entered := self._entered(request):
            return entered
        asking = self._access.who(request)
        if asking is not None:
            self._let_in(request, asking)
        elif route_path(request.scope) != LOGIN:
            raise Unauthenticated
        return None

    def _is_open(self, request: Request) -> bool:
        """Return whether anybody may ask for it: alive, also when the database of tokens is not."""
        path = route_path(request.scope)
        return path != LOGIN and any(known.match(path) for known in self._public)

    def _entered(self, request: Request) -> Response | None:
        """The first visit by the printed address: its key becomes a cookie and is gone."""
        if request.method != "GET" or route_path(request.scope) != "/":
            return None
        key = request.query_params.get("token")
        if not key:
            return None
        if self._access.who(request) is not None:
            return see_other(request, "/")
        session = self._access.first_use(request, key)
        if session is None:
            return sign_in_page(request, USED_KEY)
        note_login(request, self._access, session)
        return keep_session(see_other(request, "/"), request, self._access, session)

    def _let_in(self, request: Request, asking: Asking) -> None:
        request.scope[ASKING] = asking
        request.scope[IDENTITY] = asking.identity
        if asking.bound_to is not None:
            request.scope[CSRF] = self._access.sessions.csrf(asking.bound_to)
        if request.method in UNSAFE:
            seconds = self._access.writes.wait(asking.identity.name, take=1)
            if seconds:
                raise TooMany("too many changes in a short time; wait a moment", seconds)


class OwnForms:
    """Lets only pages of this application change anything on behalf of whoever logged in."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in UNSAFE:
            request = Request(scope, receive)
            if told := self._what_is_wrong(request):
                raise Forbidden(told)
        await self._app(scope, receive, send)

    def _what_is_wrong(self, request: Request) -> str:
        asking: Asking | None = request.scope.get(ASKING)
        if asking is not None and asking.bound_to is None:
            return ""
        if not is_same_origin(request, self._access.public_origin):
            return "this was sent from another site, and is not done"
        if asking is None or asking.bound_to is None:
            return ""
        sent = form(request).get(CSRF_FIELD) or request.headers.get(CSRF_HEADER, "")
        if not self._access.sessions.is_csrf(asking.bound_to, sent):
            return "the form is older than your session; load the page again"
        return ""
