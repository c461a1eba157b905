"""The work queue: what waits, in the order of dispatch, and why."""

from fastapi import Request, Response

from headway.definition.masking import shown_input
from headway.domain.views import QueueFilter
from headway.domain.work_queue import Source
from headway.errors import EntryNotFound
from headway.web.context import operator, surface
from headway.web.pages.asked import chosen
from headway.web.pages.stale import stale_page
from headway.web.rendering import page, see_other
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.bodies import form
from headway.web.telling import tell

router = ScopedRouter()

PER_PAGE = 50


@router.get("/queue", scope=Scope.READ, include_in_schema=False)
def queue(
    request: Request, group: str = "", manifest: str = "", source: str = "", cursor: str = ""
) -> Response:
    """What waits, first what is dispatched next."""
    asked = QueueFilter(
        group=group.strip() or None,
        source=chosen("source", Source, source),
        manifest=manifest.strip() or None,
    )
    history = surface(request).history
    return page(
        request,
        "queue.html",
        found=history.queue.page(asked, cursor or None, PER_PAGE),
        summary=history.overview.summary(),
        sources=list(Source),
        asked={"group": group, "manifest": manifest, "source": source},
        filtered=any((group, manifest, source)),
    )


@router.get("/queue/{entry_id:id}", scope=Scope.READ, include_in_schema=False)
def entry(request: Request, entry_id: int) -> Response:
    """One entry: why it waits, and the input it will run with; where it went, if it went on."""
    asked = surface(request)
    why = asked.explaining.why(entry=entry_id)
    try:
        found = asked.history.queue.detail(entry_id)
    except EntryNotFound:
        if why.execution is not None:
            return see_other(request, "/executions", why.execution)
        return page(request, "entry_gone.html", entry_id=entry_id, why=why)
    return page(
        request,
        "entry.html",
        entry=found,
        why=why,
        input=shown_input(asked.app.registry, found.workflow, found.input),
    )


@router.post("/queue/{entry_id:id}/cancel", scope=Scope.OPERATE, include_in_schema=False)
def cancel(request: Request, entry_id: int) -> Response:
    """Take it out of the queue; too late is said, and is no success."""
    done = operator(request).cancel(entry=entry_id, reason=form(request).get("reason") or None)
    if done.cancelled or done.requested:
        return tell(request, see_other(request, "/queue"), f"Entry {entry_id}: {done}")
    return stale_page(
        request,
        f"Entry {entry_id} no longer waits",
        f"It was dealt with before you cancelled it: {done}.",
        f"/queue/{entry_id}",
    )
