"""Every setting of the process that answers: value, default, where it comes from, meaning."""

import os

from fastapi import Request, Response

from headway.history.settings import Origin, shown_settings
from headway.store.urls import shown
from headway.web.context import surface
from headway.web.rendering import page
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter(prefix="/settings")


@router.get("", scope=Scope.READ, include_in_schema=False)
def settings(request: Request, search: str = "", origin: str = "") -> Response:
    """All settings, or those that are not as they come."""
    asked = surface(request)
    every = shown_settings(asked.app.settings, os.environ)
    wanted = search.strip().lower()
    found = [
        one
        for one in every
        if wanted in f"{one.name} {one.meaning}".lower()
        and (origin != "changed" or one.origin is not Origin.DEFAULT)
    ]
    return page(
        request,
        "settings.html",
        settings=found,
        changed=sum(one.origin is not Origin.DEFAULT for one in every),
        total=len(every),
        search=search,
        origin=origin,
        application=asked.app.name,
        database=shown(asked.store.url),
    )
