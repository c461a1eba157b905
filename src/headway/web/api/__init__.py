"""REST below ``/api/v1``: one router for each subject, listed here."""

from headway.web.api import (
    dead_letters,
    events,
    executions,
    groups,
    manifests,
    overview,
    queue,
    servers,
    tokens,
    workflows,
)
from headway.web.api.azolla import router as azolla_router
from headway.web.api.openapi import document_router
from headway.web.routing import ScopedRouter

PREFIX = "/api/v1"

_SUBJECTS: list[ScopedRouter] = [
    overview.router,
    manifests.router,
    groups.router,
    executions.router,
    queue.router,
    dead_letters.router,
    workflows.router,
    servers.router,
    azolla_router,
    tokens.router,
    events.router,
]

ROUTERS: list[ScopedRouter] = [*_SUBJECTS, document_router(_SUBJECTS, PREFIX)]
