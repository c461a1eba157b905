"""``/metrics`` for Prometheus: what this process did, and what waits and runs.

For whoever has the scope read: Prometheus sends a token as ``authorization: credentials``.
"""

import importlib
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any

from fastapi import Request, Response
from starlette.exceptions import HTTPException

from headway.definition.app import Headway
from headway.store.engine import Store
from headway.web.routing import Scope, ScopedRouter

MISSING = "metrics for Prometheus need an extra: pip install 'headway-scheduler[prometheus]'"

router = ScopedRouter(tags=["health"])


def counting(app: Headway, store: Store) -> Any:
    """What counts from now on what *app* does; None if the package for it is not installed.

    >>> counting(app, store).page()  # doctest: +SKIP
    """
    if find_spec("prometheus_client") is None:
        return None
    # By name, for its package may be missing.
    metrics = importlib.import_module("headway.telemetry.prometheus").Prometheus(store)
    app.observer.subscribe(metrics)
    return metrics


@router.get(
    "/metrics",
    scope=Scope.READ,
    response_class=Response,
    responses={501: {"description": "The package for it is not installed"}},
)
def metrics(request: Request) -> Response:
    """Everything there is to scrape, in the text format of Prometheus."""
    counted = request.app.state.metrics
    if counted is None:
        raise HTTPException(HTTPStatus.NOT_IMPLEMENTED, MISSING)
    headers = {"cache-control": "no-store"}
    return Response(counted.page(), media_type=counted.content_type, headers=headers)
