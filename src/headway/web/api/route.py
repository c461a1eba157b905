"""A route of the API: what is checked before its handler, and what is added to its answer."""

from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter

from headway.web.api.documented import answers_of
from headway.web.api.encoding import AsciiJson, JsonRequest
from headway.web.api.etags import tagged, versioned
from headway.web.api.idempotency import done_once, note_digest
from headway.web.api.problems import invalid, problem
from headway.web.routing import Scope, ScopedRoute, ScopedRouter

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Schema = Mapping[str, Any]


class ApiRoute(APIRoute):
    """Refuses what it does not know, tags what it reads, and does nothing twice."""

    def get_route_handler(self) -> Handler:
        """The handler between those checks."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            asked = JsonRequest(request.scope, request.receive)
            try:
                self._refuse_unknown(asked)
                if request.method == "GET":
                    return tagged(asked, await handle(asked))
                await note_digest(asked)
                return versioned(await handle(asked))
            except RequestValidationError as error:
                return problem(asked, invalid(error, self._schemas))

        return answered

    @property
    def known(self) -> tuple[str, ...]:
        """The query parameters it takes."""
        return tuple(self._query)

    @cached_property
    def _schemas(self) -> dict[str, Schema]:
        """What query and body look like, for the examples in errors."""
        found: dict[str, Schema] = {"query": {"properties": self._query}}
        if self.body_field is not None:
            found["body"] = _schema(self.body_field.field_info.annotation)
        return found

    @cached_property
    def _query(self) -> dict[str, Schema]:
        found: dict[str, Schema] = {}
        for field in self.dependant.query_params:
            annotation = field.field_info.annotation
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                schema = _schema(annotation)
                found |= {name: {**schema, **one} for name, one in schema["properties"].items()}
            else:
                found[field.alias] = _schema(annotation)
        return found

    def _refuse_unknown(self, request: Request) -> None:
        seen: set[str] = set()
        for name, value in request.query_params.multi_items():
            if name not in self._query:
                raise _wrong(name, value, f"no such parameter{_listed(self._query)}")
            if name in seen and self._query[name].get("type") != "array":
                raise _wrong(name, value, "is given twice")
            seen.add(name)


def _wrong(name: str, value: str, rule: str) -> RequestValidationError:
    wrong = {"loc": ("query", name), "input": value, "msg": rule, "type": "parameter"}
    return RequestValidationError([wrong])


def _listed(known: Mapping[str, Any]) -> str:
    return f"; the parameters are {', '.join(known)}" if known else "; this address takes none"


def _schema(annotation: Any) -> dict[str, Any]:
    return TypeAdapter(annotation).json_schema()


_KINDS: dict[Scope, type[ScopedRoute]] = {
    scope: type(f"{scope.name.title()}ApiRoute", (ScopedRoute, ApiRoute), {"scope": scope})
    for scope in Scope
}


class ApiRouter(ScopedRouter):
    """Declares routes of the API: every error they may answer with is documented by itself.

    >>> router = ApiRouter(tags=["groups"])
    >>> @router.get("/groups", scope=Scope.READ)
    ... def list_groups() -> list[str]: ...
    >>> [route.operation_id for route in router.declared()]
    ['list_groups']
    """

    def _declare(
        self, method: str, path: str, scope: Scope, options: dict[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        status = options.get("status_code", 200)

        def declare(endpoint: Endpoint) -> Endpoint:
            self.inner.add_api_route(
                path,
                endpoint if method == "GET" else done_once(endpoint, status),
                **{
                    "methods": [method],
                    "operation_id": endpoint.__name__,
                    "response_class": AsciiJson,
                    "responses": answers_of(method, path, options.pop("responses", None)),
                    "route_class_override": _KINDS[Scope(scope)],
                    **options,
                },
            )
            return endpoint

        return declare
