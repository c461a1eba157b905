"""What people do to an execution: stop it, or run the same once more."""

from http import HTTPStatus
from typing import Any

from fastapi import Request, Response

from headway.definition.runtime import NOT_GIVEN
from headway.web.context import operator, surface
from headway.web.forms.inputs import InputForm, knows, offered, sent
from headway.web.pages.once import done_once
from headway.web.pages.stale import stale_page
from headway.web.rendering import page, see_other
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.bodies import form
from headway.web.telling import tell

router = ScopedRouter(prefix="/executions/{execution_id:id}")

SAME_INPUT = "own"


@router.post("/cancel", scope=Scope.OPERATE, include_in_schema=False)
def cancel(request: Request, execution_id: int) -> Response:
    """Stop it; what had ended before is said, and is no success."""
    reason = form(request).get("reason") or None
    done = operator(request).cancel(execution=execution_id, reason=reason)
    if done.finished is not None:
        return stale_page(
            request,
            f"Execution {execution_id} had ended before",
            f"There was nothing left to cancel: it is {str(done.finished).replace('_', ' ')}.",
            f"/executions/{execution_id}",
        )
    shown = see_other(request, "/executions", execution_id)
    return tell(request, shown, f"Execution {execution_id}: {done}")


@router.get("/rerun", scope=Scope.OPERATE, include_in_schema=False)
def asked_to_rerun(request: Request, execution_id: int) -> Response:
    """The form to run it again with: the same input, or another one."""
    return rerun_page(request, execution_id)


@router.post("/rerun", scope=Scope.OPERATE, include_in_schema=False)
def rerun(request: Request, execution_id: int) -> Response:
    """Queue it once more."""
    asked, fields = surface(request), form(request)
    run = asked.history.executions.detail(execution_id).execution
    given: InputForm | None = None
    if fields.get("input") != SAME_INPUT:
        given = sent(asked.app.registry, run.workflow, run.input, fields)
        if given.failed:
            return rerun_page(request, execution_id, given, HTTPStatus.UNPROCESSABLE_ENTITY)
    value: Any = NOT_GIVEN if given is None else given.value

    def act(acting: Any) -> tuple[str, str]:
        entry = acting.rerun(execution_id, value)
        return f"/queue/{entry}", f"Execution {execution_id} runs again as entry {entry}"

    return done_once(request, act)


def rerun_page(
    request: Request,
    execution_id: int,
    given: InputForm | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    """The form, with what was sent if something was wrong with it.

    >>> rerun_page(request, 17)  # doctest: +SKIP
    """
    asked = surface(request)
    run = asked.history.executions.detail(execution_id).execution
    if given is None and knows(asked.app.registry, run.workflow):
        given = offered(asked.app.registry, run.workflow, run.input)
    return page(request, "rerun.html", status=status, run=run, input_form=given)
