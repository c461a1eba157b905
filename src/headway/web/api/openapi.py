"""The OpenAPI document of the API, and a page that shows it without asking any other host."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from fastapi import Response
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

import headway
from headway.domain.idempotency import LONGEST_KEY
from headway.web.api.encoding import AsciiJson
from headway.web.api.problems import FieldProblem, Problem
from headway.web.api.route import ApiRouter
from headway.web.routing import Scope, ScopedRoute, ScopedRouter

REF = "#/components/schemas/{model}"
SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token, as `headway tokens create` or `POST /tokens` shows it once",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "headway",
        "description": "The cookie of the dashboard, called `headway_` and the port over plain "
        "HTTP and `__Host-headway` over HTTPS; changes need its CSRF token too",
    },
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Any text of your own: the same request with the same key is done once, and "
    "answered as it was the first time, with `Idempotency-Replayed: true`",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_KEY,
        "pattern": "^[!-~]+$",
    },
    "example": "order-4711",
}
ETAG = {"description": "Names this state of the answer", "schema": {"type": "string"}}
DESCRIPTION = (
    "Everything the dashboard does. Lists are pages: `limit` says how long, `next` is the `cursor` "
    "of the one after. Errors are `application/problem+json`. Writes take an `Idempotency-Key`; "
    "changes need the `ETag` of what was looked at, as `If-Match`."
)


def document(routes: list[ScopedRoute], prefix: str) -> dict[str, Any]:
    """The document of *routes*, which lie below *prefix*.

    >>> document([], "/api/v1")["openapi"]
    '3.1.0'
    """
    made = get_openapi(
        title="headway",
        version=headway.__version__,
        summary="Run many related jobs under control, with a complete record of what happened.",
        description=DESCRIPTION,
        routes=routes,
        servers=[{"url": prefix}],
    )
    _, problems = models_json_schema(
        [(Problem, "serialization"), (FieldProblem, "serialization")], ref_template=REF
    )
    components = made.setdefault("components", {})
    components.setdefault("schemas", {}).update(problems["$defs"])
    components["securitySchemes"] = SCHEMES
    scopes = {route.operation_id: route.scope for route in routes}
    for method, operation in _operations(made):
        _complete(method, operation, scopes[operation["operationId"]])
    return made


def _operations(made: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in made.get("paths", {}).values():
        yield from methods.items()


def _complete(method: str, operation: dict[str, Any], scope: Scope) -> None:
    operation["security"] = [] if scope is Scope.PUBLIC else SECURITY
    operation["description"] = f"{operation.get('description', '')}\n\nScope: {scope}".strip()
    if method == "get":
        operation["responses"]["200"].setdefault("headers", {})["ETag"] = ETAG
    else:
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)


def document_router(routers: Sequence[ScopedRouter], prefix: str) -> ApiRouter:
    """The routes that show the document of *routers*.

    >>> [route.path for route in document_router([], "/api/v1").declared()]
    ['/openapi.json']
    """
    router = ApiRouter(tags=["document"])

    @cache
    def made() -> dict[str, Any]:
        return document([route for one in routers for route in one.declared()], prefix)

    @router.get("/openapi.json", scope=Scope.READ, include_in_schema=False)
    def read_document() -> Response:
        """This API, described for programs."""
        return AsciiJson(made())

    return router
