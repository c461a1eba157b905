"""The read side, one API for web, CLI, REST, demo and tests; and retention.

Pages take a cursor and give the next one; each looks at a bounded number of rows.
"""

from headway.domain.paging import Page
from headway.domain.views import (
    BADGED_TO,
    COUNTED_TO,
    Attention,
    AttentionKind,
    AuditFilter,
    AuditRecord,
    DeadLetterDetail,
    DeadLetterFilter,
    DeadLetterOverview,
    EdgeView,
    EntryOverview,
    ExecutionDetail,
    ExecutionFilter,
    ExecutionOverview,
    Graph,
    GraphEdge,
    GraphNode,
    GroupDetail,
    GroupFilter,
    GroupOverview,
    ManifestDefinition,
    ManifestDetail,
    ManifestFilter,
    ManifestOverview,
    NextRun,
    NodeState,
    QueuedEntry,
    QueueFilter,
    ServerOverview,
    StepRun,
    Strip,
    Summary,
    Throughput,
    ThroughputPoint,
    Timeline,
    Waiting,
)
from headway.history.audit import AuditTrail
from headway.history.azolla import Azolla, Paused, Said, Session
from headway.history.dead_letters import DeadLetterNotFound, DeadLetters
from headway.history.executions import Executions
from headway.history.groups import Groups
from headway.history.manifests import Manifests
from headway.history.overview import Overview
from headway.history.queue import Queue
from headway.history.retention import Retained, Retention
from headway.history.servers import Servers
from headway.history.tallying import Tallying
from headway.store.engine import Store

__all__ = [
    "BADGED_TO",
    "COUNTED_TO",
    "Attention",
    "AttentionKind",
    "AuditFilter",
    "AuditRecord",
    "DeadLetterDetail",
    "DeadLetterFilter",
    "DeadLetterNotFound",
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
    "History",
    "ManifestDefinition",
    "ManifestDetail",
    "ManifestFilter",
    "ManifestOverview",
    "NextRun",
    "NodeState",
    "Page",
    "Paused",
    "QueueFilter",
    "QueuedEntry",
    "Retained",
    "Retention",
    "Said",
    "ServerOverview",
    "Session",
    "StepRun",
    "Strip",
    "Summary",
    "Tallying",
    "Throughput",
    "ThroughputPoint",
    "Timeline",
    "Waiting",
]


class History:
    """What happened and how things stand, one reader per subject.

    >>> History(store).executions.page(ExecutionFilter(group="etl")).items  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self.overview = Overview(store)
        self.manifests = Manifests(store)
        self.groups = Groups(store)
        self.executions = Executions(store)
        self.queue = Queue(store)
        self.dead_letters = DeadLetters(store)
        self.servers = Servers(store)
        self.audit = AuditTrail(store)
        self.azolla = Azolla(store)
