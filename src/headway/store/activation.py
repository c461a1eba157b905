"""Activating dormant dependents: entries with runtime input, written by the run of their parent.

Fenced by the parent's execution: a run that is no longer its owner's activates nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, cast, exists, func, select, text, update

from headway.domain.execution import ExecutionState
from headway.domain.manifest import WhenBusy
from headway.domain.work_queue import EntryStatus, Source
from headway.store.edges import parents_seen
from headway.store.eligibility import OVERLAPPING, SINGLE_FLIGHT, holds_back, live_run
from headway.store.tables import dependency, execution, manifest, manifest_group, work_queue
from headway.store.transaction import Transaction, among, insert_or_ignore, word

HELD = work_queue.c.status == word(EntryStatus.HELD)

waiting = work_queue.alias("waiting")


@dataclass(frozen=True)
class Child:
    """A manifest somebody wants to activate, and how it stands."""

    manifest_id: int
    external_id: str
    kind: str
    workflow: str
    group_id: int
    group_priority: int
    when_busy: WhenBusy
    is_child: bool
    busy: bool
    parents_seen: str | None


@dataclass(frozen=True)
class Activation:
    """An activation that passed every check, with its encoded input."""

    child: Child
    input: str
    input_type: str
    priority: int
    max_attempts: int = 1


def still_running(tx: Transaction, owner: str, execution_id: int) -> str | None:
    """Hold the parent's run, which stays *owner*'s until this transaction ends; None if it is not.

    Returns the id of the transaction, by which :func:`how_it_ended` finds out whether a commit
    that was never answered was done. It is empty on SQLite, whose commits are always answered.
    """
    columns: list[ColumnElement[Any]] = [execution.c.id]
    if tx.on_postgresql:
        columns.append(cast(func.pg_current_xact_id(), Text))
    statement = (
        select(*columns)
        .where(
            execution.c.id == execution_id,
            execution.c.owner == owner,
            execution.c.state == word(ExecutionState.IN_PROGRESS),
        )
        .with_for_update(read=True)
    )
    row = tx.connection.execute(statement).first()
    return None if row is None else "".join(row[1:])


class Ending(StrEnum):
    """How a transaction has ended, in PostgreSQL's own words."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    IN_PROGRESS = "in progress"


ENDING = text("SELECT pg_xact_status(CAST(CAST(:id AS text) AS xid8))")


def how_it_ended(tx: Transaction, transaction_id: str) -> Ending:
    """How an earlier transaction has ended; one the database no longer knows was not committed."""
    if not transaction_id:
        return Ending.ABORTED
    status = tx.connection.execute(ENDING, {"id": transaction_id}).scalar()
    return Ending(status or Ending.ABORTED)


def find_children(
    tx: Transaction, parent_id: int, external_ids: Collection[str]
) -> dict[str, Child]:
    """The manifests of these names, each with whether it is a child of *parent_id*."""
    is_child = exists().where(
        dependency.c.child_id == manifest.c.id, dependency.c.parent_id == parent_id
    )
    queued = exists().where(work_queue.c.manifest_id == manifest.c.id, holds_back(tx))
    alone, beside = (live_run(manifest.c.id, kind) for kind in (SINGLE_FLIGHT, OVERLAPPING))
    statement = (
        select(
            manifest,
            manifest_group.c.priority.label("group_priority"),
            is_child.label("is_child"),
            (queued | alone | beside).label("busy"),
            parents_seen(tx, manifest.c.id).label("parents_seen"),
        )
        .join(manifest_group)
        .where(manifest.c.removed_at.is_(None), among(tx, manifest.c.external_id, external_ids))
    )
    return {row.external_id: _child(row) for row in tx.connection.execute(statement)}


def _child(row: Any) -> Child:
    return Child(
        manifest_id=row.id,
        external_id=row.external_id,
        kind=row.schedule_kind,
        workflow=row.workflow,
        group_id=row.group_id,
        group_priority=row.group_priority,
        when_busy=WhenBusy(row.when_busy or WhenBusy.SKIP),
        is_child=row.is_child,
        busy=row.busy,
        parents_seen=row.parents_seen,
    )


def activate(tx: Transaction, activations: Iterable[Activation], status: EntryStatus) -> list[int]:
    """Queue activations, or hold them until their child is free; returns the manifests taken.

    One that is queued or held for the child already is left as it is.
    """
    rows = [_row(tx, one, status) for one in activations]
    if not rows:
        return []
    statement = insert_or_ignore(tx, work_queue).returning(work_queue.c.manifest_id)
    return list(tx.connection.execute(statement, rows).scalars())


def replace_held(tx: Transaction, one: Activation) -> None:
    """Hold this activation instead of the one held for its child so far."""
    newer = {
        "input": one.input,
        "input_type": one.input_type,
        "max_attempts": one.max_attempts,
        "created_at": tx.now,
    }
    held = HELD & (work_queue.c.manifest_id == one.child.manifest_id)
    if tx.connection.execute(update(work_queue).where(held).values(newer)).rowcount == 0:
        activate(tx, [one], EntryStatus.HELD)


def _row(tx: Transaction, one: Activation, status: EntryStatus) -> dict[str, Any]:
    return {
        "manifest_id": one.child.manifest_id,
        "group_id": one.child.group_id,
        "workflow": one.child.workflow,
        "input": one.input,
        "input_type": one.input_type,
        "source": Source.ACTIVATION.value,
        "status": status.value,
        "priority": one.priority,
        "max_attempts": one.max_attempts,
        "created_at": tx.now,
        "parents_seen": one.child.parents_seen,
    }


def release_held(tx: Transaction, manifest_ids: Iterable[int]) -> int:
    """Queue what was held for children that are free now; called by what frees them.

    Behind an activation that still waits, for its turn or its next attempt, it stays held.
    """
    waits = exists().where(
        waiting.c.manifest_id == work_queue.c.manifest_id,
        waiting.c.status == word(EntryStatus.QUEUED),
        waiting.c.source == word(Source.ACTIVATION),
    )
    free = and_(HELD, among(tx, work_queue.c.manifest_id, manifest_ids), ~waits)
    statement = update(work_queue).where(free).values(status=word(EntryStatus.QUEUED))
    return tx.connection.execute(statement).rowcount
