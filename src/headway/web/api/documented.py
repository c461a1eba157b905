"""Which statuses a route may answer with, for the OpenAPI document."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from headway.web.api.problems import MEDIA_TYPE

_SAID = {
    304: "What the sender has is still so",
    400: "The request is malformed, or for another host",
    401: "No token, or one that is wrong, expired or revoked",
    403: "The token's scope is not enough",
    404: "There is no such thing",
    408: "The body took too long",
    409: "It is not in a state for this, or the idempotency key was used for something else",
    412: "Somebody else has changed it meanwhile",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "A parameter or the body is wrong; `errors` says what of it",
    428: "If-Match is missing",
    429: "Too many requests, or too much is waiting already; `Retry-After` says when to come back",
    503: "The database does not answer",
}

_ALWAYS = (400, 401, 403, 413, 422, 429, 503)
_OF_WRITES = (408, 409, 415)


Answers = Mapping[int | str, Mapping[str, Any]]


def answers_of(method: str, path: str, own: Answers | None = None) -> dict[int | str, Any]:
    """Every status that a route may answer with beside success, described; *own* are its own.

    >>> sorted(answers_of("GET", "/groups/{name}"))
    [304, 400, 401, 403, 404, 413, 422, 429, 503]
    """
    expected = [*_ALWAYS, *((304,) if method == "GET" else _OF_WRITES)]
    expected += [404] if "{" in path else []
    expected += [412, 428] if method == "PATCH" else []
    found: dict[int | str, Any] = {status: {} for status in sorted(expected)}
    found |= own or {}
    return {status: _described(int(status)) | dict(told) for status, told in found.items()}


def _described(status: int) -> dict[str, Any]:
    told: dict[str, Any] = {"description": _SAID.get(status, HTTPStatus(status).phrase)}
    if status >= 400:
        told["content"] = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return told
