"""The workflows this process knows, and the input each takes."""

from fastapi import Request
from pydantic import Field
from starlette.exceptions import HTTPException

from headway.errors import UnknownWorkflow
from headway.web.api.encoding import portable
from headway.web.api.fields import Answer, NameInPath
from headway.web.api.models.manifests import InputSchema
from headway.web.api.route import ApiRouter
from headway.web.context import surface
from headway.web.routing import Scope

router = ApiRouter(tags=["workflows"])


class WorkflowItem(Answer):
    """A workflow that can be run: its steps, and the input it takes."""

    name: str = Field(examples=["load"])
    steps: list[str]
    input: InputSchema


class Workflows(Answer):
    """Every workflow of this process."""

    items: list[WorkflowItem]


@router.get("/workflows", scope=Scope.READ)
def list_workflows(request: Request) -> Workflows:
    """Every workflow that can be run by name, with the JSON schema of its input."""
    names = surface(request).app.registry.names()
    return Workflows(items=[_told(request, name) for name in names])


@router.get("/workflows/{name:name}", scope=Scope.READ)
def read_workflow(request: Request, name: NameInPath) -> WorkflowItem:
    """One workflow, with the JSON schema of its input."""
    try:
        return _told(request, name)
    except UnknownWorkflow as unknown:
        raise HTTPException(404, str(unknown)) from unknown


def _told(request: Request, name: str) -> WorkflowItem:
    found = surface(request).app.registry.find(name)
    steps = [step.name for step in found.workflow.steps]
    return WorkflowItem(name=found.name, steps=steps, input=input_schema(request, found.name))


def input_schema(request: Request, workflow: str) -> InputSchema:
    """The input *workflow* takes; empty if this process does not know it.

    >>> input_schema(request, "load").input_type  # doctest: +SKIP
    'Table'
    """
    try:
        taken = surface(request).app.registry.find(workflow).input_type
    except UnknownWorkflow:
        return InputSchema(workflow=workflow, input_type="", known=False, json_schema={})
    schema = portable(taken.json_schema())
    return InputSchema(workflow=workflow, input_type=taken.name, known=True, json_schema=schema)
