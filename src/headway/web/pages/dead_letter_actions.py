"""What people do about dead letters: one, several, all."""

from http import HTTPStatus

from fastapi import Request, Response

from headway.definition.interventions import AS_IT_FAILED, Resolution, Resolutions
from headway.errors import DefinitionError
from headway.web.context import operator, surface
from headway.web.forms.inputs import InputForm, knows, offered, sent
from headway.web.pages.stale import stale_page
from headway.web.rendering import page, see_other
from headway.web.routing import Scope, ScopedRouter
from headway.web.security.bodies import Form, form
from headway.web.telling import tell

router = ScopedRouter(prefix="/dead-letters")

SAME_INPUT = "own"


@router.post("/requeue", scope=Scope.OPERATE, include_in_schema=False)
def requeue_several(request: Request) -> Response:
    """Those that were ticked; what somebody else has resolved meanwhile is left out."""
    fields = form(request)
    letters = _ticked(fields)
    done = operator(request).dead_letters.requeue_many(letters, _note(fields))
    return _resolved(request, letters, done)


@router.post("/acknowledge", scope=Scope.OPERATE, include_in_schema=False)
def acknowledge_several(request: Request) -> Response:
    """Those that were ticked; what somebody else has resolved meanwhile is left out."""
    fields = form(request)
    letters = _ticked(fields)
    done = operator(request).dead_letters.acknowledge_many(letters, _note(fields))
    return _resolved(request, letters, done)


@router.get("/{letter_id:id}/requeue", scope=Scope.OPERATE, include_in_schema=False)
def asked_to_requeue(request: Request, letter_id: int) -> Response:
    """The form to run it again with another input."""
    return requeue_page(request, letter_id)


@router.post("/{letter_id:id}/requeue", scope=Scope.OPERATE, include_in_schema=False)
def requeue(request: Request, letter_id: int) -> Response:
    """Run what failed once more, with the input that failed or another one."""
    fields = form(request)
    given: InputForm | None = None
    if fields.get("input") != SAME_INPUT:
        asked = surface(request)
        found = asked.history.dead_letters.detail(letter_id)
        given = sent(asked.app.registry, found.letter.workflow, found.input or "null", fields)
        if given.failed:
            return requeue_page(request, letter_id, given, HTTPStatus.UNPROCESSABLE_ENTITY)
    value = AS_IT_FAILED if given is None else given.value
    done = operator(request).dead_letters.requeue(letter_id, _note(fields), input=value)
    return _one_resolved(request, letter_id, done)


@router.post("/{letter_id:id}/acknowledge", scope=Scope.OPERATE, include_in_schema=False)
def acknowledge(request: Request, letter_id: int) -> Response:
    """Leave it at the failure."""
    done = operator(request).dead_letters.acknowledge(letter_id, _note(form(request)))
    return _one_resolved(request, letter_id, done)


def requeue_page(
    request: Request,
    letter_id: int,
    given: InputForm | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    """The form, with what was sent if something was wrong with it.

    >>> requeue_page(request, 7)  # doctest: +SKIP
    """
    asked = surface(request)
    found = asked.history.dead_letters.detail(letter_id)
    workflow = found.letter.workflow
    if given is None and knows(asked.app.registry, workflow):
        given = offered(asked.app.registry, workflow, found.input or "null")
    return page(
        request,
        "requeue.html",
        status=status,
        letter=found.letter,
        input_form=given,
        note=form(request).get("note"),
    )


def _one_resolved(request: Request, letter_id: int, done: Resolution) -> Response:
    if not done.success:
        title = f"Dead letter {letter_id} was resolved before"
        if done.removed:
            title = f"Dead letter {letter_id} cannot be requeued"
        return stale_page(request, title, f"{done.message}.", f"/dead-letters/{letter_id}")
    shown = see_other(request, "/dead-letters", letter_id)
    return tell(request, shown, f"Dead letter {letter_id}: {done.message}")


def _resolved(request: Request, letters: list[int], done: Resolutions) -> Response:
    if letters and not done.count:
        told = "somebody else has resolved all of them meanwhile"
        return stale_page(request, "Nothing left to do", f"{told}.", "/dead-letters")
    before = len(letters) - done.count
    more = f"; {before} had been resolved before" if before else ""
    return tell(request, see_other(request, "/dead-letters"), f"{done.message}{more}")


def _ticked(fields: Form) -> list[int]:
    sent_ids = fields.all("id")
    if not sent_ids:
        raise DefinitionError("id: tick at least one dead letter")
    wrong = next((one for one in sent_ids if not _is_id(one)), None)
    if wrong is not None:
        raise DefinitionError(f"id = {wrong!r}: must be the id of a dead letter; for example 7")
    return sorted({int(one) for one in sent_ids})


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _note(fields: Form) -> str | None:
    return fields.get("note").strip() or None
