"""The web application: every router, behind everything that keeps strangers out.

It can be served by headway itself or mounted in an application of the user's own.
"""

from collections.abc import Callable

from fastapi import FastAPI

import headway
from headway.definition.app import Headway
from headway.health import Health
from headway.store.engine import Store
from headway.web import api, assets, metrics, pages, probes
from headway.web.answering import AnswerErrors, answer_errors
from headway.web.context import Surface
from headway.web.routing import ScopedRoute, ScopedRouter
from headway.web.security.access import Access
from headway.web.security.bodies import BoundedBodies
from headway.web.security.gate import Gate, KnownHosts, OwnForms
from headway.web.security.headers import SecurityHeaders


def build_app(
    app: Headway,
    store: Store,
    access: Access,
    *,
    health: Callable[[], Health] | None = None,
) -> FastAPI:
    """Dashboard and REST API of *app* on *store*, for whoever *access* knows.

    >>> build_app(hw, hw.open_store(), Access())  # doctest: +SKIP
    """
    made = FastAPI(
        title=f"headway: {app.name}",
        version=headway.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    made.state.surface = Surface(app, store, health)
    made.state.access = access
    made.state.metrics = metrics.counting(app, store)
    for prefix, router in routers():
        made.include_router(router.inner, prefix=prefix)
    answer_errors(made)
    # The last is the first to see a request.
    made.add_middleware(OwnForms, access=access)
    made.add_middleware(BoundedBodies)
    made.add_middleware(Gate, access=access, routes=[route for _, route in every_route()])
    made.add_middleware(KnownHosts, access=access)
    made.add_middleware(AnswerErrors)
    made.add_middleware(SecurityHeaders, secure=access.secure)
    return made


def routers() -> list[tuple[str, ScopedRouter]]:
    """Every router with the path it lies below.

    >>> "/api/v1" in {prefix for prefix, _ in routers()} or not api.ROUTERS
    True
    """
    return [
        *(("", one.router) for one in (assets, probes, metrics)),
        *(("", router) for router in pages.ROUTERS),
        *((api.PREFIX, router) for router in api.ROUTERS),
    ]


def every_route() -> list[tuple[str, ScopedRoute]]:
    """Every route with its whole path; one without a scope is an error.

    >>> [path for path, route in every_route() if path == "/healthz"]
    ['/healthz']
    """
    return [
        (prefix + route.path, route) for prefix, router in routers() for route in router.declared()
    ]
