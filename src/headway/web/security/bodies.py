"""Bodies: read once, within limits of size and time, before anything parses them."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.domain.text import shown, storage_rule
from headway.web.answering import answer
from headway.web.failures import Failure
from headway.web.paths import is_for_programs

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
MERGE = "application/merge-patch+json"
KIB = 1024
LARGEST = {FORM: 512 * KIB, JSON: 1024 * KIB, MERGE: 1024 * KIB}
MOST_FIELDS = 1000
BODY_SECONDS = 10.0
# A little of what is too large is read and dropped, so that whoever sends it sees the answer.
DROPPED = 2 * 1024 * KIB
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
SENT_FORM = "headway.form"


class Refused(Exception):
    """A body that nobody will look at."""

    def __init__(self, status: HTTPStatus, told: str) -> None:
        super().__init__(told)
        self.failure = Failure(status, told, {"connection": "close"})


@dataclass(frozen=True)
class Form:
    """The fields of a form, in the order they were sent.

    >>> form = Form((("id", "1"), ("id", "2"), ("reason", "late")))
    >>> form.all("id"), form.get("reason"), form.get("other")
    (['1', '2'], 'late', '')
    """

    fields: tuple[tuple[str, str], ...] = field(default=())

    def get(self, name: str, default: str = "") -> str:
        """The first field of this name."""
        return next((value for found, value in self.fields if found == name), default)

    def all(self, name: str) -> list[str]:
        """Every field of this name."""
        return [value for found, value in self.fields if found == name]

    def __contains__(self, name: str) -> bool:
        return any(found == name for found, _ in self.fields)


def form(request: Request) -> Form:
    """The form that was sent with *request*.

    >>> form(Request({"type": "http"})).all("id")
    []
    """
    found: Form = request.scope.get(SENT_FORM, Form())
    return found


class BoundedBodies:
    """Hands on a request with its body in one piece, or answers why it does not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            body = await _read(request)
            if _media_type(request) == FORM:
                scope[SENT_FORM] = parsed(body)
        except ClientDisconnect:
            return
        except Refused as refused:
            response = answer(request, refused.failure)
            await response(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


async def _read(request: Request) -> bytes:
    limit = _limit(request)
    announced = request.headers.get("content-length", "0")
    if not announced.isascii() or not announced.isdigit():
        raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                size += len(piece)
                if size <= limit:
                    body += piece
                if size > DROPPED:
                    break
    except TimeoutError:
        raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body took too long") from None
    if size > limit:
        raise Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {limit // KIB} KiB"
        )
    return bytes(body)


def _limit(request: Request) -> int:
    """The largest body that this request may have, going by what it says the body is."""
    empty = request.headers.get("content-length", "0") == "0"
    if empty and "transfer-encoding" not in request.headers:
        return 0
    if request.method not in UNSAFE:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{request.method} takes no body")
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body uncompressed")
    allowed = (JSON, MERGE) if is_for_programs(request.scope) else (FORM,)
    if _media_type(request) not in allowed:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the body as {' or '.join(allowed)}")
    return LARGEST[_media_type(request)]


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def parsed(body: bytes) -> Form:
    """The fields in an urlencoded *body*.

    >>> parsed(b"name=a%2Fb&reason=").fields
    (('name', 'a/b'), ('reason', ''))
    """
    if body.count(b"&") >= MOST_FIELDS:
        raise Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the form has more than {MOST_FIELDS} fields"
        )
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "the form is not urlencoded UTF-8") from None
    for name, value in fields:
        # Inputs and tokens are checked where they are read: their values must not be shown.
        secret = name.startswith(("input", "token"))
        if rule := storage_rule(name) or (None if secret else storage_rule(value)):
            told = f"field {shown(name)} = {'…' if secret else shown(value)}: {rule}"
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"{told}; for example 'wrong day'")
    return Form(tuple(fields))


def _replayed(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Any:
        return pending.pop() if pending else await receive()

    return receiving
