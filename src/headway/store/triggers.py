"""Asking for runs: entries made of a manifest's own definition, by one plain INSERT.

Nothing but that INSERT is sent, so that it can join a caller's transaction on any driver; the
time comes from the database's clock in the same statement.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from headway.domain.manifest import DEPENDENTS
from headway.domain.work_queue import Source
from headway.store.edges import parents_seen
from headway.store.tables import executions, manifest, manifest_group, work_queue
from headway.store.transaction import Transaction, among, word
from headway.store.types import Instant
from headway.store.wakes import Scope, leave_wakes

COLUMNS = (
    "manifest_id",
    "group_id",
    "workflow",
    "input_type",
    "input",
    "source",
    "priority",
    "created_at",
    "scheduled_at",
    "parents_seen",
    "delayed",
    "max_attempts",
)


def trigger(
    tx: Transaction,
    external_id: str,
    delay: timedelta | None,
    input: str | None = None,
    max_attempts: int = 1,
) -> int:
    """Queue a run of this manifest, any number of times; returns how many manifests had the id."""
    chosen = and_(manifest.c.external_id == external_id, manifest.c.removed_at.is_(None))
    return _queue(tx, chosen, delay, input, max_attempts)


def trigger_group(tx: Transaction, group: str) -> int:
    """Queue a run of every enabled manifest of a group that does not run after others."""
    of_group = select(manifest_group.c.id).where(manifest_group.c.name == group)
    chosen = and_(
        manifest.c.group_id.in_(of_group),
        manifest.c.removed_at.is_(None),
        manifest.c.enabled,
        manifest.c.schedule_kind.not_in([word(kind) for kind in DEPENDENTS]),
    )
    return _queue(tx, chosen)


def _queue(
    tx: Transaction,
    chosen: ColumnElement[bool],
    delay: timedelta | None = None,
    input: str | None = None,
    max_attempts: int = 1,
) -> int:
    entries: Select[Any] = select(
        manifest.c.id,
        manifest.c.group_id,
        manifest.c.workflow,
        manifest.c.input_type,
        manifest.c.input if input is None else literal(input),
        word(Source.TRIGGER),
        manifest.c.priority,
        literal(tx.now, Instant),
        literal(None if delay is None else tx.now + delay, Instant),
        parents_seen(tx, manifest.c.id),
        literal(delay is not None),
        literal(max_attempts),
    ).where(chosen)
    statement = insert(work_queue).from_select(COLUMNS, entries).returning(work_queue.c.id)
    return len(tx.connection.execute(statement).all())


def rerun(tx: Transaction, execution_id: int, max_attempts: int = 1) -> int | None:
    """Queue what an execution ran once more, with its input; returns the entry, if there is one."""
    of_nobody = executions.c.manifest_id.is_(None)
    again: Select[Any] = (
        select(
            executions.c.manifest_id,
            executions.c.group_id,
            executions.c.workflow,
            executions.c.input_type,
            executions.c.input,
            case((of_nobody, word(Source.AD_HOC)), else_=word(Source.RERUN)),
            func.coalesce(manifest.c.priority, executions.c.priority),
            literal(tx.now, Instant),
            literal(None, Instant),
            parents_seen(tx, manifest.c.id),
            literal(False),
            literal(max_attempts),
        )
        .select_from(executions.outerjoin(manifest, manifest.c.id == executions.c.manifest_id))
        .where(
            executions.c.id == execution_id,
            or_(of_nobody, and_(manifest.c.id.is_not(None), manifest.c.removed_at.is_(None))),
        )
    )
    statement = insert(work_queue).from_select(COLUMNS, again).returning(work_queue.c.id)
    return tx.connection.execute(statement).scalar_one_or_none()


def set_enabled(tx: Transaction, external_id: str, enabled: bool) -> int:
    """Switch a manifest on or off; switched on, it and its children are looked at again."""
    chosen = and_(manifest.c.external_id == external_id, manifest.c.removed_at.is_(None))
    statement = (
        update(manifest)
        .where(chosen)
        .values(enabled=enabled, updated_at=tx.now)
        .returning(manifest.c.id)
    )
    ids = list(tx.connection.execute(statement).scalars())
    leave_wakes(tx, [(key, scope) for key in ids for scope in (Scope.SELF, Scope.CHILDREN)])
    return len(ids)


def workflow_of(tx: Transaction, external_id: str) -> str | None:
    """The workflow this manifest runs, if there is one of that id."""
    statement = select(manifest.c.workflow).where(
        manifest.c.external_id == external_id, manifest.c.removed_at.is_(None)
    )
    return tx.connection.execute(statement).scalar_one_or_none()


def ids_of(tx: Transaction, external_ids: Iterable[str]) -> list[int]:
    """The manifests of these names that are not removed."""
    statement = select(manifest.c.id).where(
        manifest.c.removed_at.is_(None), among(tx, manifest.c.external_id, external_ids)
    )
    return sorted(tx.connection.execute(statement).scalars())


def group_exists(tx: Transaction, name: str) -> bool:
    """Whether a group of this name exists."""
    statement = select(func.count()).where(manifest_group.c.name == name)
    return bool(tx.connection.execute(statement).scalar_one())
