"""Writes that are done once, however often they are sent.

What a request does and what it was answered are written in one transaction: there is no moment at
which one of them is there and the other is not.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from fastapi import Request, Response

from headway.domain.idempotency import Answer as Kept
from headway.domain.idempotency import request_digest
from headway.history import History
from headway.store.engine import Store
from headway.web.api.encoding import AsciiJson
from headway.web.api.fields import Answer
from headway.web.context import HISTORY, OPERATOR, operator

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

KEY = "idempotency-key"
REPLAYED = "idempotency-replayed"
DIGEST = "headway.digest"
KEPT_HEADERS = ("etag",)


async def note_digest(request: Request) -> None:
    """Keep what tells this request from others, while the body can be waited for.

    >>> await note_digest(request)  # doctest: +SKIP
    """
    if KEY in request.headers:
        path = f"{request.scope['path']}?{request.url.query}|{request.headers.get('if-match', '')}"
        request.scope[DIGEST] = request_digest(request.method, path, await request.body())


def done_once(endpoint: Endpoint, status: int) -> Endpoint:
    """*endpoint*, which answers a request with a key it has seen as it did the first time.

    >>> done_once(trigger_manifest, 202)  # doctest: +SKIP
    """

    @wraps(endpoint)
    def doing(**given: Any) -> Any:
        request: Request = given["request"]
        key = request.headers.get(KEY)
        if key is None:
            return endpoint(**given)
        return _once(request, key, status, given, endpoint)

    return cast(Endpoint, doing)


def _once(
    request: Request, key: str, status: int, given: dict[str, Any], endpoint: Callable[..., Answer]
) -> Response:
    with operator(request).once(key, request.scope[DIGEST]) as once:
        if once.answer is not None:
            return _answered(once.answer, {REPLAYED: "true"})
        request.scope[OPERATOR] = once.operator
        request.scope[HISTORY] = History(cast(Store, once.transactions))
        answer = endpoint(**given)
        response: Response | None = given.get("response")
        sent = response.headers if response is not None else {}
        headers = {name: sent[name] for name in KEPT_HEADERS if name in sent}
        once.answer = Kept(status, _written(answer.kept()), headers)
    return _answered(Kept(status, _written(answer), headers), {})


def _written(answer: Answer) -> str:
    return bytes(AsciiJson(answer.model_dump(mode="json")).body).decode("ascii")


def _answered(kept: Kept, more: dict[str, str]) -> Response:
    headers = {**kept.headers, **more}
    return Response(kept.body, kept.status, headers, media_type="application/json")
