"""Dead letters: looked at, requeued and acknowledged, one or many."""

from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import Field, model_validator
from starlette.exceptions import HTTPException

from headway.definition.interventions import AS_IT_FAILED, NOTE_LIMIT, Resolution
from headway.definition.masking import shown_input
from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.views import DeadLetterFilter
from headway.web.api.encoding import portable
from headway.web.api.fields import LARGEST_ID, Body, IdInPath, Name, Paging
from headway.web.api.models.dead_letters import (
    DeadLetterAnswer,
    DeadLetterItem,
    ResolutionAnswer,
    ResolutionsAnswer,
)
from headway.web.api.models.executions import ExecutionItem
from headway.web.api.paging import Paged, paged
from headway.web.api.route import ApiRouter
from headway.web.context import history, operator, surface
from headway.web.routing import Scope

router = ApiRouter(tags=["dead letters"])

ONE = "/dead-letters/{letter_id:id}"
MOST_AT_ONCE = 1000

Note = Annotated[str, Field(max_length=NOTE_LIMIT)]
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]


class DeadLetterQuery(Paging):
    """Which dead letters; what is left out does not restrict."""

    status: DeadLetterStatus | None = None
    group: Name | None = None
    workflow: Name | None = None


class AcknowledgeRequest(Body):
    """What a person has to say about a dead letter."""

    note: Note | None = Field(default=None, examples=["the table is gone"])


class RequeueRequest(AcknowledgeRequest):
    """The same, and another input if the one that failed was wrong."""

    input: Any = Field(
        default=None, description="Left out: the one that failed", examples=[{"name": "users"}]
    )


class BatchRequest(AcknowledgeRequest):
    """Which dead letters: those of `ids`, or `all` that wait, of one group or workflow."""

    ids: list[Id] | None = Field(
        default=None, min_length=1, max_length=MOST_AT_ONCE, examples=[[7, 8]]
    )
    all: bool = Field(default=False, examples=[False])
    group: Name | None = None
    workflow: Name | None = None

    @model_validator(mode="after")
    def _names_some(self) -> "BatchRequest":
        if (self.ids is None) is not self.all:
            raise ValueError('must name ids or say "all": true, and not both')
        if self.ids is not None and (self.group or self.workflow):
            raise ValueError('group and workflow choose among all; say "all": true')
        return self


@router.get("/dead-letters", scope=Scope.READ)
def list_dead_letters(
    request: Request, response: Response, query: Annotated[DeadLetterQuery, Query()]
) -> Paged[DeadLetterItem]:
    """Dead letters, newest first."""
    wanted = DeadLetterFilter(**query.model_dump(exclude={"limit", "cursor"}))
    page = surface(request).history.dead_letters.page(wanted, query.cursor, query.limit)
    return paged(request, response, page, DeadLetterItem.model_validate)


@router.post("/dead-letters/requeue", scope=Scope.OPERATE)
def requeue_dead_letters(request: Request, wanted: BatchRequest) -> ResolutionsAnswer:
    """Run what failed once more, for several; those resolved already are left out."""
    letters = operator(request).dead_letters
    if wanted.ids is not None:
        return ResolutionsAnswer.model_validate(letters.requeue_many(wanted.ids, wanted.note))
    done = letters.requeue_all(wanted.note, group=wanted.group, workflow=wanted.workflow)
    return ResolutionsAnswer.model_validate(done)


@router.post("/dead-letters/acknowledge", scope=Scope.OPERATE)
def acknowledge_dead_letters(request: Request, wanted: BatchRequest) -> ResolutionsAnswer:
    """Leave it at the failure, for several; those resolved already are left out."""
    letters = operator(request).dead_letters
    if wanted.ids is not None:
        return ResolutionsAnswer.model_validate(letters.acknowledge_many(wanted.ids, wanted.note))
    done = letters.acknowledge_all(wanted.note, group=wanted.group, workflow=wanted.workflow)
    return ResolutionsAnswer.model_validate(done)


@router.get(ONE, scope=Scope.READ)
def read_dead_letter(request: Request, letter_id: IdInPath) -> DeadLetterAnswer:
    """Everything about a dead letter: the input that failed, and the last runs."""
    asked = surface(request)
    found = asked.history.dead_letters.detail(letter_id)
    letter = DeadLetterItem.model_validate(found.letter)
    input = None
    if found.input is not None:
        input = portable(shown_input(asked.app.registry, letter.workflow, found.input))
    runs = [ExecutionItem.model_validate(run) for run in found.executions]
    return DeadLetterAnswer(**letter.model_dump(), input=input, executions=runs)


@router.post(f"{ONE}/requeue", scope=Scope.OPERATE)
def requeue_dead_letter(
    request: Request, letter_id: IdInPath, wanted: RequeueRequest | None = None
) -> ResolutionAnswer:
    """Run what failed once more and count failures anew."""
    wanted = wanted or RequeueRequest()
    input = wanted.input if "input" in wanted.model_fields_set else AS_IT_FAILED
    done = operator(request).dead_letters.requeue(letter_id, wanted.note, input=input)
    return _resolved(request, letter_id, done)


@router.post(f"{ONE}/acknowledge", scope=Scope.OPERATE)
def acknowledge_dead_letter(
    request: Request, letter_id: IdInPath, wanted: AcknowledgeRequest | None = None
) -> ResolutionAnswer:
    """Leave it at the failure: the manifest goes on with its next occurrence."""
    note = wanted.note if wanted else None
    done = operator(request).dead_letters.acknowledge(letter_id, note)
    return _resolved(request, letter_id, done)


def _resolved(request: Request, letter_id: int, done: Resolution) -> ResolutionAnswer:
    if done.removed:
        raise HTTPException(409, done.message)
    if not done.success:
        status = history(request).dead_letters.detail(letter_id).letter.status
        raise HTTPException(409, f"dead letter {letter_id} is resolved already: {status}")
    return ResolutionAnswer.model_validate(done)
