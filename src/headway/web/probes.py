"""Whether the process is alive, and whether it is ready: for those who watch it."""

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from headway.errors import HeadwayError
from headway.store.engine import TRANSIENT
from headway.store.migrate import check_schema
from headway.web.context import Surface, surface
from headway.web.routing import Scope, ScopedRouter

NOT_STORED = {"cache-control": "no-store"}

router = ScopedRouter(tags=["health"])


@router.get("/healthz", scope=Scope.PUBLIC)
async def alive() -> Response:
    """The process answers; nothing else is asked."""
    return JSONResponse({"status": "alive"}, headers=NOT_STORED)


@router.get("/readyz", scope=Scope.PUBLIC, responses={503: {"description": "Not ready"}})
def ready(request: Request) -> Response:
    """The database answers, its schema fits, and the actors of this process do their work.

    What exactly is wrong is for those who may log in: strangers learn only what kind it is.
    """
    wrong = _what_is_wrong(surface(request))
    told = {"status": "not ready", "reasons": wrong} if wrong else {"status": "ready"}
    return JSONResponse(told, 503 if wrong else 200, headers=NOT_STORED)


def _what_is_wrong(asked: Surface) -> list[str]:
    try:
        check_schema(asked.store)
    except TRANSIENT:
        return ["the database does not answer"]
    except HeadwayError:
        return ["the database's schema does not fit"]
    health = asked.health() if asked.health else None
    return [trouble.what for trouble in health.troubles] if health else []
