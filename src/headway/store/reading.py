"""The read side: executions live and finished, the queue, groups and manifests, as they stand."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Subquery, func, select

from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.execution import Execution, ExecutionState
from headway.domain.work_queue import EntryStatus, Source
from headway.store.execution_rows import to_execution
from headway.store.tables import (
    dead_letter,
    execution,
    execution_history,
    executions,
    manifest,
    manifest_group,
    manifest_state,
    work_queue,
)
from headway.store.transaction import Transaction, among, word


@dataclass(frozen=True)
class QueuedEntry:
    """An entry that waits to be dispatched."""

    id: int
    external_id: str | None
    workflow: str
    group_name: str | None
    source: Source
    priority: int
    input: str
    created_at: datetime
    scheduled_at: datetime | None
    scheduled_for: datetime | None
    attempts: int
    max_attempts: int


@dataclass(frozen=True)
class GroupOverview:
    """A group and how much of what it holds."""

    name: str
    max_active_jobs: int | None
    priority: int
    enabled: bool
    manifests: int
    queued: int
    active: int
    completed: int
    failed: int
    dead_letters: int


@dataclass(frozen=True)
class ManifestOverview:
    """A manifest and where it stands."""

    external_id: str
    workflow: str
    group_name: str
    schedule_kind: str
    enabled: bool
    last_success_at: datetime | None
    settled_until: datetime | None
    wake_at: datetime | None


def list_executions(
    tx: Transaction,
    *,
    external_id: str | None = None,
    states: Collection[ExecutionState] = (),
    limit: int | None = None,
) -> list[Execution]:
    """Executions, live and finished, newest last; with *limit* only the newest."""
    statement = select(executions).order_by(executions.c.id.desc())
    if external_id is not None:
        statement = statement.where(executions.c.external_id == external_id)
    if states:
        statement = statement.where(among(tx, executions.c.state, [str(one) for one in states]))
    if limit is not None:
        statement = statement.limit(limit)
    newest_first = [to_execution(row) for row in tx.connection.execute(statement)]
    return newest_first[::-1]


def list_queued(tx: Transaction, limit: int | None = None) -> list[QueuedEntry]:
    """What waits in the queue, oldest first."""
    statement = (
        select(work_queue, manifest.c.external_id, manifest_group.c.name.label("group_name"))
        .select_from(
            work_queue.outerjoin(manifest, manifest.c.id == work_queue.c.manifest_id).outerjoin(
                manifest_group, manifest_group.c.id == work_queue.c.group_id
            )
        )
        .where(work_queue.c.status == word(EntryStatus.QUEUED))
        .order_by(work_queue.c.id)
        .limit(limit)
    )
    return [_queued(row) for row in tx.connection.execute(statement)]


def _queued(row: Any) -> QueuedEntry:
    return QueuedEntry(
        id=row.id,
        external_id=row.external_id,
        workflow=row.workflow,
        group_name=row.group_name,
        source=Source(row.source),
        priority=row.priority,
        input=row.input,
        created_at=row.created_at,
        scheduled_at=row.scheduled_at,
        scheduled_for=row.scheduled_for,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
    )


def list_groups(tx: Transaction) -> list[GroupOverview]:
    """Every group with its counts, by name."""
    counts = {
        "manifests": _per_group(select(manifest.c.group_id).where(manifest.c.removed_at.is_(None))),
        "queued": _per_group(
            select(work_queue.c.group_id).where(work_queue.c.status == word(EntryStatus.QUEUED))
        ),
        "active": _per_group(select(execution.c.group_id)),
        "completed": _ended(ExecutionState.COMPLETED),
        "failed": _ended(ExecutionState.FAILED),
        "dead_letters": _per_group(
            select(manifest.c.group_id)
            .select_from(dead_letter.join(manifest))
            .where(dead_letter.c.status == word(DeadLetterStatus.AWAITING_INTERVENTION))
        ),
    }
    statement = select(
        manifest_group,
        *(func.coalesce(counted.c.number, 0).label(name) for name, counted in counts.items()),
    )
    joined: Any = manifest_group
    for counted in counts.values():
        joined = joined.outerjoin(counted, counted.c.group_id == manifest_group.c.id)
    rows = tx.connection.execute(statement.select_from(joined).order_by(manifest_group.c.name))
    return [_group(row) for row in rows]


def _ended(state: ExecutionState) -> Subquery:
    return _per_group(
        select(execution_history.c.group_id).where(execution_history.c.state == word(state))
    )


def _per_group(rows: Select[tuple[int | None]]) -> Subquery:
    each = rows.subquery()
    return (
        select(each.c.group_id, func.count().label("number")).group_by(each.c.group_id).subquery()
    )


def _group(row: Any) -> GroupOverview:
    return GroupOverview(
        name=row.name,
        max_active_jobs=row.max_active_jobs,
        priority=row.priority,
        enabled=row.enabled,
        manifests=row.manifests,
        queued=row.queued,
        active=row.active,
        completed=row.completed,
        failed=row.failed,
        dead_letters=row.dead_letters,
    )


def list_manifests(tx: Transaction) -> list[ManifestOverview]:
    """Every manifest that is not removed, by external id."""
    statement = (
        select(manifest, manifest_group.c.name.label("group_name"), manifest_state)
        .select_from(manifest.join(manifest_group).join(manifest_state))
        .where(manifest.c.removed_at.is_(None))
        .order_by(manifest.c.external_id)
    )
    return [
        ManifestOverview(
            external_id=row.external_id,
            workflow=row.workflow,
            group_name=row.group_name,
            schedule_kind=row.schedule_kind,
            enabled=row.enabled,
            last_success_at=row.last_success_at,
            settled_until=row.settled_until,
            wake_at=row.wake_at,
        )
        for row in tx.connection.execute(statement)
    ]
