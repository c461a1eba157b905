"""Forms that may be sent twice and do something once: each brings a key of its own."""

import json
from collections.abc import Callable
from http import HTTPStatus

from fastapi import Request, Response

from headway.definition.operating import Operator
from headway.domain.idempotency import Answer, request_digest
from headway.web.context import operator
from headway.web.rendering import see_other
from headway.web.security.bodies import form
from headway.web.telling import tell

KEY = "once"

Act = Callable[[Operator], tuple[str, str]]


def done_once(request: Request, act: Act) -> Response:
    """Do what *act* does and go where it says, with its sentence; again only go there.

    >>> done_once(request, lambda acting: ("/queue", "done"))  # doctest: +SKIP
    """
    key = form(request).get(KEY)
    path, text = _again_or_now(request, key, act) if key else act(operator(request))
    return tell(request, see_other(request, path), text)


def _again_or_now(request: Request, key: str, act: Act) -> tuple[str, str]:
    digest = request_digest(request.method, request.url.path, key.encode())
    with operator(request).once(key, digest) as once:
        if once.answer is None:
            path, text = act(once.operator)
            once.answer = Answer(HTTPStatus.SEE_OTHER, json.dumps([path, text]))
        else:
            path, text = json.loads(once.answer.body)
    return str(path), str(text)
