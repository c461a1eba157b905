"""Every question that a page asks the read side, by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import ExecutionState
from headway.domain.work_queue import Source
from headway.history import (
    AuditFilter,
    DeadLetterFilter,
    ExecutionFilter,
    GroupFilter,
    History,
    ManifestFilter,
    Page,
    QueueFilter,
)
from headway.store.engine import Store
from headway.store.reading import depth
from headway.store.transaction import Transaction

Calls = dict[str, Callable[[], Any]]
FAILED = (ExecutionState.FAILED, ExecutionState.CANCELLED)


def second(page: Callable[..., Page[Any]], *filters: Any) -> Callable[[], Any]:
    """The page after the first."""

    def read() -> Any:
        return page(*filters, cursor=page(*filters).next)

    return read


def calls(history: History, now: datetime) -> Calls:
    """The calls over a database that ``seeding`` has filled."""
    return {
        **_overview(history),
        **_manifests(history),
        **_groups(history),
        **_executions(history, now),
        **_others(history),
    }


def _overview(history: History) -> Calls:
    overview = history.overview
    return {
        "summary": overview.summary,
        "throughput of an hour": lambda: overview.throughput(timedelta(hours=1)),
        "throughput of a week": lambda: overview.throughput(timedelta(days=7)),
        "what waits": overview.waiting,
        "next runs": overview.next_runs,
        "attention": overview.attention,
    }


def _manifests(history: History) -> Calls:
    page = history.manifests.page
    return {
        "manifests": page,
        "manifests, next page": second(page),
        "manifests by prefix": lambda: page(ManifestFilter(search="load-0100")),
        "manifests by substring": lambda: page(ManifestFilter(search="9999", anywhere=True)),
        "manifests of a group": second(page, ManifestFilter(group="group-00007")),
        "manifests of a workflow": lambda: page(ManifestFilter(workflow="workflow-3")),
        "manifests, disabled": lambda: page(ManifestFilter(enabled=False)),
        "manifests, dead-lettered": lambda: page(ManifestFilter(dead_lettered=True)),
        "manifest detail": lambda: history.manifests.detail("load-000700"),
        "strips": lambda: history.manifests.strips(range(1, 51), 20),
        "graph around a manifest": lambda: history.manifests.graph(around="load-000300"),
        "graph of a group's manifests": lambda: history.manifests.graph(group="group-00003"),
        "graph of manifests": history.manifests.graph,
    }


def _groups(history: History) -> Calls:
    page = history.groups.page
    return {
        "groups": page,
        "groups, next page": second(page),
        "groups by prefix": lambda: page(GroupFilter(search="group-0001")),
        "groups by substring": lambda: page(GroupFilter(search="77", anywhere=True)),
        "groups, disabled": lambda: page(GroupFilter(enabled=False)),
        "group detail": lambda: history.groups.detail("group-00003"),
        "graph of groups": history.groups.graph,
        "graph around a group": lambda: history.groups.graph(around="group-00003"),
    }


def _executions(history: History, now: datetime) -> Calls:
    page = history.executions.page
    week_ago = now - timedelta(days=7)
    some = ExecutionFilter(group="group-00003", states=FAILED, source=Source.TRIGGER)
    old = ExecutionFilter(since=week_ago - timedelta(hours=1), until=week_ago)
    return {
        "executions": page,
        "executions, next page": second(page),
        "executions, failed": second(page, ExecutionFilter(states=FAILED)),
        "executions, running": lambda: page(ExecutionFilter(states=[ExecutionState.IN_PROGRESS])),
        "executions of a manifest": second(page, ExecutionFilter(manifest="load-000700")),
        "executions of a group": second(page, ExecutionFilter(group="group-00003")),
        "executions of a workflow": lambda: page(ExecutionFilter(workflow="workflow-3")),
        "executions, combined": lambda: page(some),
        "executions of an hour last week": lambda: page(old),
        "execution detail": lambda: history.executions.detail(77),
        "timeline": lambda: history.executions.timeline(now - timedelta(hours=1), now),
        "timeline of an hour last week": lambda: history.executions.timeline(
            week_ago - timedelta(hours=1), week_ago
        ),
        "some executions": lambda: history.executions.these(range(70, 80)),
        "when it began": history.executions.began,
        "timeline of a group last week": lambda: history.executions.timeline(
            week_ago - timedelta(hours=6), week_ago, "group-00003"
        ),
    }


def _others(history: History) -> Calls:
    queue, letters, audit = history.queue.page, history.dead_letters.page, history.audit.page
    awaiting = DeadLetterFilter(DeadLetterStatus.AWAITING_INTERVENTION)
    of_group = DeadLetterFilter(group="group-00007", workflow="workflow-7")
    return {
        "queue": queue,
        "queue, next page": second(queue),
        "queue of a group": lambda: queue(QueueFilter(group="group-00003")),
        "queue of a manifest": lambda: queue(QueueFilter(manifest="load-000070")),
        "queue of a source": lambda: queue(QueueFilter(source=Source.RERUN)),
        "dead letters": second(letters),
        "dead letters, awaiting": second(letters, awaiting),
        "dead letters of a group": lambda: letters(of_group),
        "dead letter detail": lambda: history.dead_letters.detail(10),
        "servers": history.servers.all,
        "audit": second(audit),
        "audit of an actor": lambda: audit(AuditFilter(actor="operator-3")),
        "audit of a subject": lambda: audit(AuditFilter(subject="load-7")),
    }


def depths(store: Store) -> Calls:
    """What is asked before more is queued for somebody."""

    def asking(ask: Callable[[Transaction], int]) -> Callable[[], int]:
        def read() -> int:
            with store.reading() as tx:
                return ask(tx)

        return read

    return {
        "depth of a group's queue": asking(lambda tx: depth.of_group(tx, "group-00003", 100)),
        "depth beside a manifest": asking(lambda tx: depth.beside_manifest(tx, "load-000070", 100)),
        "depth beside an execution": asking(lambda tx: depth.beside_execution(tx, 7, 100)),
        "depth without manifests": asking(lambda tx: depth.of_nobody(tx, 100)),
    }
