"""What people do to a group: cap, priority and switch, run it, stop it."""

from http import HTTPStatus

from fastapi import Request, Response

from headway.domain.versions import version_of
from headway.errors import ChangedMeanwhile
from headway.web.context import operator, surface
from headway.web.drawing.words import counted
from headway.web.pages.group_form import GroupForm
from headway.web.pages.groups import group_page
from headway.web.rendering import see_other
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.bodies import form
from headway.web.telling import tell

router = ScopedRouter(prefix="/groups")


@router.post("/{name:name}/settings", scope=Scope.OPERATE, include_in_schema=False)
def change(request: Request, name: str) -> Response:
    """Cap and priority; whoever looked at older ones is shown the present ones instead."""
    sent = GroupForm.sent(form(request))
    if sent.errors:
        return group_page(request, name, sent, HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        operator(request).set_group(name, **sent.values, expected=sent.version or None)
    except ChangedMeanwhile:
        return _stale(request, name, sent)
    cap = sent.values["max_active_jobs"]
    told = "no cap" if cap is None else f"a cap of {cap:,}"
    text = f"{name} now has {told} and priority {sent.values['priority']}"
    return tell(request, see_other(request, "/groups", name), text)


def _stale(request: Request, name: str, sent: GroupForm) -> Response:
    """What was typed is kept, and may be saved now that the present values have been seen."""
    found = surface(request).history.groups.detail(name)
    shown = GroupForm(sent.cap, sent.priority, version_of(found.updated_at), stale=True)
    return group_page(request, name, shown, HTTPStatus.CONFLICT)


@router.post("/{name:name}/switch", scope=Scope.OPERATE, include_in_schema=False)
def switch(request: Request, name: str) -> Response:
    """On or off; the last one to say so is right."""
    enabled = form(request).get("enabled") == "yes"
    operator(request).set_group(name, enabled=enabled)
    told = "is on" if enabled else "is off: nothing of it is queued or dispatched until it is on"
    if form(request).get("back") == "list":
        return tell(request, see_other(request, "/groups"), f"{name} {told}")
    return tell(request, see_other(request, "/groups", name), f"{name} {told}")


@router.post("/{name:name}/trigger", scope=Scope.OPERATE, include_in_schema=False)
def trigger(request: Request, name: str) -> Response:
    """A run of every enabled manifest, dependents aside."""
    queued = operator(request).trigger_group(name)
    told = f"{counted(queued, 'run')} of {name} queued"
    if not queued:
        told = f"{name} has no enabled manifest that runs by itself; nothing was queued"
    return tell(request, see_other(request, "/groups", name), told, "ok" if queued else "warning")


@router.post("/{name:name}/cancel", scope=Scope.OPERATE, include_in_schema=False)
def cancel(request: Request, name: str) -> Response:
    """Everything of the group that is queued, pending or running."""
    done = operator(request).cancel(group=name, reason=form(request).get("reason") or None)
    return tell(request, see_other(request, "/groups", name), f"{name}: {done}")
