"""The dashboard: one router for each subject, listed here."""

from headway.web.pages import (
    audit,
    azolla,
    dead_letter_actions,
    dead_letters,
    execution_actions,
    executions,
    graph,
    group_actions,
    groups,
    home,
    login,
    manifest_actions,
    manifests,
    queue,
    servers,
    settings,
    timeline,
)
from headway.web.routing import ScopedRouter

ROUTERS: list[ScopedRouter] = [
    login.router,
    home.router,
    manifests.router,
    manifest_actions.router,
    groups.router,
    group_actions.router,
    graph.router,
    timeline.router,
    executions.router,
    execution_actions.router,
    queue.router,
    dead_letters.router,
    dead_letter_actions.router,
    servers.router,
    azolla.router,
    settings.router,
    audit.router,
]
