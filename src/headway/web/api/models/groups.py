"""Groups and the dependency graph as the API tells of them."""

from datetime import datetime
from typing import Self

from pydantic import Field

from headway.domain.views import GroupDetail, NodeState
from headway.web.api.fields import Answer
from headway.web.api.models.executions import ExecutionItem


class GroupItem(Answer):
    """A group and how much of what it holds; what has ended is that of the last day."""

    name: str = Field(examples=["nightly"])
    max_active_jobs: int | None
    priority: int
    enabled: bool
    state: NodeState
    manifests: int
    queued: int
    active: int
    completed: int
    failed: int
    cancelled: int
    dead_letters: int
    run_seconds: float


class GroupAnswer(GroupItem):
    """Everything about a group: who holds its slots, and the groups before and after it."""

    created_at: datetime
    updated_at: datetime
    holders: list[ExecutionItem]
    parents: list[str]
    children: list[str]

    @classmethod
    def of(cls, detail: GroupDetail) -> Self:
        """The answer about *detail*."""
        overview = {name: getattr(detail.overview, name) for name in GroupItem.model_fields}
        beside = {name: getattr(detail, name) for name in cls.model_fields if hasattr(detail, name)}
        return cls.model_validate(overview | beside)


class GraphNodeItem(Answer):
    """A group or a manifest; `group` is the group of a manifest."""

    name: str
    state: NodeState
    group: str | None


class GraphEdgeItem(Answer):
    """`child` runs after `parent`; between groups `weight` counts the manifests concerned."""

    parent: str
    child: str
    weight: int


class GraphAnswer(Answer):
    """Nodes, the edges among them, and whether there is more than is shown."""

    nodes: list[GraphNodeItem]
    edges: list[GraphEdgeItem]
    truncated: bool
    around: str | None
