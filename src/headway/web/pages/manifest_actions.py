"""What people do to a manifest: switch it, run it with an input, stop what it does."""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response

from headway.definition.runtime import NOT_GIVEN
from headway.web.context import operator, surface
from headway.web.forms.inputs import InputForm, knows, offered, sent
from headway.web.pages.once import done_once
from headway.web.rendering import page, see_other
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.bodies import form
from headway.web.telling import tell

router = ScopedRouter(prefix="/manifests/{external_id:name}")

OWN_INPUT = "own"


@router.post("/switch", scope=Scope.OPERATE, include_in_schema=False)
def switch(request: Request, external_id: str) -> Response:
    """On or off; the last one to say so is right."""
    fields = form(request)
    on = fields.get("enabled") == "yes"
    turn = operator(request).enable if on else operator(request).disable
    turn(external_id)
    told = "is on" if on else "is off: its schedule and its parents start nothing until it is on"
    back = () if fields.get("back") == "list" else (external_id,)
    return tell(request, see_other(request, "/manifests", *back), f"{external_id} {told}")


@router.get("/trigger", scope=Scope.OPERATE, include_in_schema=False)
def asked_to_trigger(request: Request, external_id: str) -> Response:
    """The form to run it with: its own input, or another one."""
    return trigger_page(request, external_id)


@router.post("/trigger", scope=Scope.OPERATE, include_in_schema=False)
def trigger(request: Request, external_id: str) -> Response:
    """Queue a run; an input that does not fit is shown again with what is wrong with it."""
    asked, fields = surface(request), form(request)
    found = asked.history.manifests.detail(external_id)
    delay, wrong = _delay(fields.get("delay"))
    given: InputForm | None = None
    if fields.get("input") != OWN_INPUT:
        workflow, stored = found.overview.workflow, found.definition.input
        given = sent(asked.app.registry, workflow, stored, fields)
    if wrong or (given is not None and given.failed):
        return trigger_page(request, external_id, given, wrong, HTTPStatus.UNPROCESSABLE_ENTITY)
    value: Any = NOT_GIVEN if given is None else given.value

    def act(acting: Any) -> tuple[str, str]:
        entry = acting.trigger(external_id, value, delay=delay)
        return f"/queue/{entry}", f"{external_id} was triggered as entry {entry}"

    return done_once(request, act)


def trigger_page(
    request: Request,
    external_id: str,
    given: InputForm | None = None,
    wrong_delay: str = "",
    status: int = HTTPStatus.OK,
) -> Response:
    """The form, with what was sent if something was wrong with it.

    >>> trigger_page(request, "load-users")  # doctest: +SKIP
    """
    asked = surface(request)
    found = asked.history.manifests.detail(external_id)
    workflow = found.overview.workflow
    if given is None and knows(asked.app.registry, workflow):
        given = offered(asked.app.registry, workflow, found.definition.input)
    return page(
        request,
        "trigger.html",
        status=status,
        manifest=found.overview,
        input_form=given,
        delay=form(request).get("delay"),
        wrong_delay=wrong_delay,
    )


@router.post("/cancel", scope=Scope.OPERATE, include_in_schema=False)
def cancel(request: Request, external_id: str) -> Response:
    """Everything of it that is queued, pending or running."""
    done = operator(request).cancel(external_id, reason=form(request).get("reason") or None)
    kind = "ok" if done.cancelled or done.requested else "warning"
    shown = see_other(request, "/manifests", external_id)
    return tell(request, shown, f"{external_id}: {done}", kind)


def _delay(text: str) -> tuple[timedelta | None, str]:
    """Minutes as typed, and what is wrong with them."""
    if not text.strip():
        return None, ""
    try:
        return timedelta(minutes=float(text)), ""
    except (ValueError, OverflowError):
        return None, "must be a number of minutes; for example 30"
