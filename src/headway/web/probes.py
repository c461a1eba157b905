"""Whether the process is alive, and whether it is ready: for those who watch it."""

from anyio import to_thread
from fastapi import Request, Response
from fastapi.responses import JSONResponse

from headway.errors import DatabaseLost, HeadwayError
from headway.health import FILE_LOST
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
async def ready(request: Request) -> Response:
    """The database answers, its schema fits, and the actors of this process do their work.

    What exactly is wrong is for those who may log in: strangers learn only what kind it is.
    """
    # In threads of their own: those of other requests may all wait for the database.
    asked = surface(request)
    wrong = await to_thread.run_sync(_what_is_wrong, asked, limiter=asked.probe_threads)
    told = {"status": "not ready", "reasons": wrong} if wrong else {"status": "ready"}
    return JSONResponse(told, 503 if wrong else 200, headers=NOT_STORED)


def _what_is_wrong(asked: Surface) -> list[str]:
    try:
        check_schema(asked.store)
    except TRANSIENT:
        return ["the database does not answer"]
    except DatabaseLost:
        return [FILE_LOST]
    except HeadwayError:
        return ["the database's schema does not fit"]
    health = asked.health() if asked.health else None
    return [trouble.what for trouble in health.troubles] if health else []
