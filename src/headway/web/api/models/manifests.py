"""Manifests as the API tells of them."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from headway.definition.masking import shown_input
from headway.definition.registry import Registry
from headway.domain.views import ManifestDetail, NodeState
from headway.web.api.encoding import portable
from headway.web.api.fields import Answer, Seconds
from headway.web.api.models.dead_letters import DeadLetterItem
from headway.web.api.models.executions import ExecutionItem
from headway.web.api.models.queue import EntryItem


class ManifestItem(Answer):
    """A manifest and where it stands; `schedule` says in words when it runs."""

    external_id: str = Field(examples=["load-users"])
    workflow: str = Field(examples=["load"])
    group_name: str
    schedule_kind: str = Field(examples=["cron"])
    schedule: str = Field(examples=["at 06:00"])
    enabled: bool
    group_enabled: bool
    state: NodeState
    running: bool
    queued: bool
    dead_lettered: bool
    last_success_at: datetime | None
    settled_until: datetime | None
    wake_at: datetime | None


class Definition(Answer):
    """What was declared; none means the deployment's default. Secrets of `input` are masked."""

    input: Any
    input_type: str
    priority: int
    time_zone: str | None
    exclusions: list[str]
    misfire_policy: str | None
    misfire_threshold: Seconds | None
    catch_up_limit: int | None
    first_run: str | None
    variance: Seconds | None
    max_retries: int | None
    retry: str | None
    timeout: Seconds | None
    join: str | None
    when_busy: str | None
    allow_overlap: bool
    owner: str
    batch: str | None
    scheduled_since: datetime
    created_at: datetime
    updated_at: datetime


class EdgeItem(Answer):
    """A parent or a child; one without a name was removed. `fresh`: the parent has a success that
    the child has not consumed."""

    external_id: str | None
    group_name: str | None
    enabled: bool
    state: NodeState
    last_success_at: datetime | None
    fresh: bool


class ComingRunItem(Answer):
    """A run to come: when it starts, and the occurrence it stands for, which may be earlier."""

    at: datetime
    stands_for: datetime
    moved: bool


class ComingRuns(Answer):
    """The next runs of a manifest, as far as time alone decides."""

    items: list[ComingRunItem]


class ManifestAnswer(ManifestItem):
    """Everything about a manifest. Of parents, children and runs the first or last ones."""

    definition: Definition
    parents: list[EdgeItem]
    parent_count: int
    children: list[EdgeItem]
    child_count: int
    next_runs: list[ComingRunItem]
    executions: list[ExecutionItem]
    dead_letter: DeadLetterItem | None
    entries: list[EntryItem]
    trouble: str | None

    @classmethod
    def of(cls, detail: ManifestDetail, registry: Registry) -> Self:
        """The answer about *detail*."""
        beside = {name: getattr(detail, name) for name in cls.model_fields if hasattr(detail, name)}
        told = detail.definition
        definition = {name: getattr(told, name) for name in Definition.model_fields}
        definition["input"] = portable(shown_input(registry, detail.overview.workflow, told.input))
        overview = {name: getattr(detail.overview, name) for name in ManifestItem.model_fields}
        return cls.model_validate(overview | beside | {"definition": definition})


class InputSchema(Answer):
    """The input a workflow takes, as JSON schema; of one this process does not know it is empty."""

    workflow: str
    input_type: str
    known: bool = Field(description="Whether this process knows the workflow")
    json_schema: dict[str, Any]
