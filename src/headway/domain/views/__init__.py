"""What the read side shows: plain values, made by the store, for every surface the same."""

from headway.domain.execution import StepRun
from headway.domain.views.audit import AuditFilter, AuditRecord
from headway.domain.views.dead_letters import (
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterOverview,
)
from headway.domain.views.executions import (
    ExecutionDetail,
    ExecutionFilter,
    ExecutionOverview,
    Strip,
    Timeline,
)
from headway.domain.views.graph import Graph, GraphEdge, GraphNode
from headway.domain.views.groups import COUNTED_TO, GroupDetail, GroupFilter, GroupOverview
from headway.domain.views.manifests import (
    EdgeView,
    ManifestDefinition,
    ManifestDetail,
    ManifestFilter,
    ManifestOverview,
)
from headway.domain.views.overview import (
    BADGED_TO,
    Attention,
    AttentionKind,
    NextRun,
    Summary,
    Throughput,
    ThroughputPoint,
    Waiting,
)
from headway.domain.views.queue import EntryOverview, QueuedEntry, QueueFilter
from headway.domain.views.servers import ServerOverview
from headway.domain.views.states import NodeState, state_of

__all__ = [
    "BADGED_TO",
    "COUNTED_TO",
    "Attention",
    "AttentionKind",
    "AuditFilter",
    "AuditRecord",
    "DeadLetterDetail",
    "DeadLetterFilter",
    "DeadLetterOverview",
    "EdgeView",
    "EntryOverview",
    "ExecutionDetail",
    "ExecutionFilter",
    "ExecutionOverview",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "GroupDetail",
    "GroupFilter",
    "GroupOverview",
    "ManifestDefinition",
    "ManifestDetail",
    "ManifestFilter",
    "ManifestOverview",
    "NextRun",
    "NodeState",
    "QueueFilter",
    "QueuedEntry",
    "ServerOverview",
    "StepRun",
    "Strip",
    "Summary",
    "Throughput",
    "ThroughputPoint",
    "Timeline",
    "Waiting",
    "state_of",
]
