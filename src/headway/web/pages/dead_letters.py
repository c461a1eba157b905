"""Dead letters: the list, and everything about one."""

from fastapi import Request, Response

from headway.definition.masking import shown_input
from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.views import DeadLetterFilter
from headway.web.context import surface
from headway.web.forms.inputs import knows, offered
from headway.web.pages.asked import chosen
from headway.web.rendering import page
from headway.web.routing import Scope, ScopedRouter

router = ScopedRouter()

PER_PAGE = 50
ALL = "all"


@router.get("/dead-letters", scope=Scope.READ, include_in_schema=False)
def dead_letters(
    request: Request,
    status: str = DeadLetterStatus.AWAITING_INTERVENTION.value,
    group: str = "",
    workflow: str = "",
    cursor: str = "",
) -> Response:
    """What waits for a person, or did."""
    picked = None if status == ALL else chosen("status", DeadLetterStatus, status)
    wanted = DeadLetterFilter(picked, group.strip() or None, workflow.strip() or None)
    history = surface(request).history
    found = history.dead_letters.page(wanted, cursor or None, PER_PAGE)
    ids = {one.execution_id for one in found.items if one.execution_id is not None}
    return page(
        request,
        "dead_letters.html",
        found=found,
        failed=history.executions.these(ids) if ids else {},
        statuses=[*DeadLetterStatus],
        awaiting=DeadLetterStatus.AWAITING_INTERVENTION,
        asked={"status": status, "group": group, "workflow": workflow},
        filtered=bool(group or workflow),
    )


@router.get("/dead-letters/{letter_id:id}", scope=Scope.READ, include_in_schema=False)
def dead_letter(request: Request, letter_id: int) -> Response:
    """One dead letter: what failed and how, and what can be done about it."""
    asked = surface(request)
    found = asked.history.dead_letters.detail(letter_id)
    workflow, stored = found.letter.workflow, found.input
    known = stored is not None and knows(asked.app.registry, workflow)
    return page(
        request,
        "dead_letter.html",
        detail=found,
        letter=found.letter,
        waits=found.letter.status is DeadLetterStatus.AWAITING_INTERVENTION,
        input=None if stored is None else shown_input(asked.app.registry, workflow, stored),
        input_form=offered(asked.app.registry, workflow, stored) if known and stored else None,
    )
