"""Routes that say who may use them: one without a scope cannot be declared.

The scope is looked at before the body is read. Names of manifests and groups may hold slashes; a
route takes one as ``{external_id:name}``, which a link writes percent-encoded.
"""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException

from headway.domain.text import shown, storage_rule
from headway.errors import DefinitionError
from headway.web.context import identity
from headway.web.failures import Forbidden
from headway.web.paths import ENCODED_SLASH, is_for_programs
from headway.web.security.identity import Scope

__all__ = ["Scope", "ScopedRoute", "ScopedRouter"]

LARGEST_ID = 2**63 - 1

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class _NameConvertor(StringConvertor):
    """A name in a path, with the slashes it was sent with."""

    def convert(self, value: str) -> str:
        return value.replace(ENCODED_SLASH, "/")


class _IdConvertor(IntegerConvertor):
    """The id of a row in a path; longer numbers are the id of nothing, like any other word."""

    regex = "[0-9]{1,19}"


register_url_convertor("name", _NameConvertor())
register_url_convertor("id", _IdConvertor())


class ScopedRoute(APIRoute):
    """A route that is only handled for somebody who has its scope."""

    scope: Scope

    def get_route_handler(self) -> Handler:
        """The handler behind the check of the scope."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            if self.scope is not Scope.PUBLIC:
                asking = identity(request)
                if not asking.may(self.scope):
                    raise Forbidden(f"this needs the scope {self.scope}, which you do not have")
                _refuse_unstorable(request)
            return await handle(request)

        return checked


def _refuse_unstorable(request: Request) -> None:
    """Refuse NUL and ids that no row can have: databases raise an error when they look for them."""
    numbers = [one for one in request.path_params.values() if isinstance(one, int)]
    # The API says itself, by 422, which ids there can be.
    if not is_for_programs(request.scope) and any(one > LARGEST_ID for one in numbers):
        raise HTTPException(HTTPStatus.NOT_FOUND)
    for name, value in (*request.path_params.items(), *request.query_params.multi_items()):
        if isinstance(value, str) and (rule := storage_rule(value)):
            raise DefinitionError(
                f"field {shown(name)} = {shown(value)}: {rule}; for example 'extract-users'"
            )


class _PublicRoute(ScopedRoute):
    scope = Scope.PUBLIC


class _ReadRoute(ScopedRoute):
    scope = Scope.READ


class _OperateRoute(ScopedRoute):
    scope = Scope.OPERATE


class _AdminRoute(ScopedRoute):
    scope = Scope.ADMIN


_ROUTES = {kind.scope: kind for kind in (_PublicRoute, _ReadRoute, _OperateRoute, _AdminRoute)}


class ScopedRouter:
    """Declares routes, each with the scope it needs.

    >>> router = ScopedRouter(prefix="/groups")
    >>> @router.get("", scope=Scope.READ)
    ... def groups(request: Request) -> Response: ...
    >>> [(route.path, str(route.scope)) for route in router.declared()]
    [('/groups', 'read')]
    """

    def __init__(self, *, prefix: str = "", tags: Sequence[str] = ()) -> None:
        self.inner = APIRouter(prefix=prefix, tags=list(tags))

    def get(self, path: str, *, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """A route that reads; *options* are FastAPI's."""
        return self._declare("GET", path, scope, options)

    def post(self, path: str, *, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """A route that does something."""
        return self._declare("POST", path, scope, options)

    def put(self, path: str, *, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """A route that replaces something."""
        return self._declare("PUT", path, scope, options)

    def patch(self, path: str, *, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """A route that changes a part of something."""
        return self._declare("PATCH", path, scope, options)

    def delete(self, path: str, *, scope: Scope, **options: Any) -> Callable[[Endpoint], Endpoint]:
        """A route that removes something."""
        return self._declare("DELETE", path, scope, options)

    def declared(self) -> Iterator[ScopedRoute]:
        """Every route of this router."""
        for route in self.inner.routes:
            if not isinstance(route, ScopedRoute):
                raise TypeError(f"{route} has no scope; declare it with a ScopedRouter")
            yield route

    def _declare(
        self, method: str, path: str, scope: Scope, options: dict[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        kind = _ROUTES[Scope(scope)]

        def declare(endpoint: Endpoint) -> Endpoint:
            self.inner.add_api_route(
                path, endpoint, methods=[method], route_class_override=kind, **options
            )
            return endpoint

        return declare
