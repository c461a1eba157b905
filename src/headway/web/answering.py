"""Errors as answers: problem+json below ``/api``, pages everywhere else, never a traceback."""

import logging
from http import HTTPStatus

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.errors import HeadwayError
from headway.observe import told
from headway.web.api.problems import problem
from headway.web.failures import Failure, failure_of
from headway.web.paths import encoded_path, is_for_programs
from headway.web.rendering import page, see_other, url
from headway.web.security.auditing import note_refusal

logger = logging.getLogger("headway.web")


def answer_errors(app: FastAPI) -> None:
    """Let every error of *app* end as an answer.

    >>> answer_errors(FastAPI())
    """
    for kind in (HTTPException, RequestValidationError, HeadwayError):
        app.add_exception_handler(kind, _answer)


class AnswerErrors:
    """Answers what nobody expected, once: it is logged here and goes no further."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = dict(scope)  # what is learnt about a request on the way in is ours alone
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            if scope["type"] != "http" or begun:
                raise
            request = Request(scope, receive)
            response = await _answer(request, error)
            await response(scope, receive, send)


async def _answer(request: Request, error: Exception) -> Response:
    failure = failure_of(error)
    if failure.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log(request, failure, error)
    await to_thread.run_sync(note_refusal, request, failure)
    return answer(request, failure)


def _log(request: Request, failure: Failure, error: Exception) -> None:
    """Log a database that is away in one line, and everything else with its traceback."""
    asked = request.method, request.url.path
    if failure.status is HTTPStatus.SERVICE_UNAVAILABLE:
        logger.error("%s %s failed: %s", *asked, told(error))
    else:
        logger.error("%s %s failed", *asked, exc_info=error)


def answer(request: Request, failure: Failure) -> Response:
    """*failure* in the form that whoever asked understands.

    >>> answer(request, failure_of(error)).status_code  # doctest: +SKIP
    404
    """
    if is_for_programs(request.scope):
        return problem(request, failure)
    if failure.status is HTTPStatus.UNAUTHORIZED:
        return _login(request, failure)
    # Nothing is read for it: the database may be what failed, and this is the event loop's thread.
    shown = page(request, "error.html", status=failure.status, failure=failure, waiting=None)
    shown.headers.update(failure.headers)
    return shown


def sign_in_page(request: Request, refused: str, next_path: str = "") -> Response:
    """The login page, with what was wrong with the last try.

    >>> sign_in_page(request, "This token is over.").status_code  # doctest: +SKIP
    401
    """
    status = HTTPStatus.UNAUTHORIZED
    return page(request, "login.html", status=status, refused=refused, next=next_path, waiting=None)


def _login(request: Request, failure: Failure) -> Response:
    if "hx-request" in request.headers:
        gone = Response(status_code=failure.status)
        gone.headers["hx-redirect"] = url(request, "/login")
        return gone
    if request.method != "GET":
        return sign_in_page(request, "You are not logged in, or no longer.")
    here = encoded_path(request.scope)
    query = f"?{request.url.query}" if request.url.query else ""
    asked = "" if here == "/" else url(request, here) + query
    return see_other(request, "/login", next=asked)
