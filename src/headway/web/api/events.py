"""Server-sent events: what changes, as it changes."""

import asyncio
import json
from collections.abc import AsyncIterator

from anyio import to_thread
from fastapi import Request, Response
from starlette.responses import StreamingResponse

from headway.web.api.fields import IdInPath
from headway.web.api.route import ApiRouter
from headway.web.broadcasting import Broadcaster, Event, Stream
from headway.web.context import surface
from headway.web.routing import Scope
from headway.web.security.permits import permit_of

router = ApiRouter(tags=["events"])

BEAT_SECONDS = 15.0
RETRY_MILLISECONDS = 2000
_AS_STREAM = {
    200: {
        "description": "Events for as long as the connection is open; comments in between keep it",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get("/events", scope=Scope.READ, response_class=Response, responses=_AS_STREAM)
async def stream_events(request: Request) -> Response:
    """What changes from now on: `summary`, and `execution` for each one that moves.

    `missed` says that more has changed than is told.
    """
    broadcaster = surface(request).broadcaster
    permit = permit_of(request, Scope.READ)
    stream = broadcaster.listen(asyncio.get_running_loop(), permit=permit)
    return _streaming(broadcaster, stream)


@router.get(
    "/executions/{execution_id}/events",
    scope=Scope.READ,
    response_class=Response,
    responses=_AS_STREAM,
)
async def stream_execution(request: Request, execution_id: IdInPath) -> Response:
    """How one execution goes on: `execution` at first and at each change, `end` at the end."""
    asked = surface(request)
    await to_thread.run_sync(asked.history.executions.detail, execution_id)
    permit = permit_of(request, Scope.READ)
    stream = asked.broadcaster.listen(asyncio.get_running_loop(), execution_id, permit)
    return _streaming(asked.broadcaster, stream)


def _streaming(broadcaster: Broadcaster, stream: Stream) -> Response:
    return StreamingResponse(
        _written(broadcaster, stream),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _written(broadcaster: Broadcaster, stream: Stream) -> AsyncIterator[str]:
    try:
        yield f"retry: {RETRY_MILLISECONDS}\n\n"
        while True:
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    event = await stream.events.get()
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if event is None or stream.ended:
                return
            yield written(event)
    finally:
        broadcaster.close(stream)


def written(event: Event) -> str:
    r"""*event* as a browser reads it.

    >>> written(Event("end", {"id": 17}))
    'event: end\ndata: {"id": 17}\n\n'
    """
    return f"event: {event.name}\ndata: {json.dumps(event.data)}\n\n"
