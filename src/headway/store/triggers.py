"""Asking for runs: entries made of a manifest's own definition, by one plain INSERT.

Nothing but that INSERT is sent, so that it can join a caller's transaction on any driver; the
time comes from the database's clock in the same statement.
"""

from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal,
    or_,
    select,
)
from sqlalchemy.sql.dml import ReturningInsert

from headway.domain.manifest import DEPENDENTS
from headway.domain.work_queue import Source
from headway.store.edges import parents_seen
from headway.store.tables import executions, manifest, manifest_group, work_queue
from headway.store.transaction import (
    Draft,
    Transaction,
    among,
    draft_for,
    drafted_to_queue,
    word,
)
from headway.store.types import Instant
from headway.store.versions import One, change
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
) -> int | None:
    """Queue a run of this manifest, any number of times; returns the entry, if there is one."""
    draft, moment = drafted_to_queue(tx)
    asked = {
        "external_id": external_id,
        "scheduled_at": None if delay is None else tx.now + delay,
        "delayed": delay is not None,
        "max_attempts": max_attempts,
        "input": input,
    }
    statement, asked = _trigger(draft, input is None), asked | moment
    return next((row.id for row in tx.ask(statement, asked)), None)


def trigger_group(tx: Transaction, group: str) -> int:
    """Queue a run of every enabled manifest of a group that does not run after others; returns
    how many."""
    of_group = select(manifest_group.c.id).where(manifest_group.c.name == group)
    chosen = and_(
        manifest.c.group_id.in_(of_group),
        manifest.c.removed_at.is_(None),
        manifest.c.enabled,
        manifest.c.schedule_kind.not_in([word(kind) for kind in DEPENDENTS]),
    )
    asked = {"now": tx.now, "scheduled_at": None, "delayed": False, "max_attempts": 1}
    statement = _queueing(draft_for(tx), chosen, manifest.c.input)
    return len(tx.connection.execute(statement, asked).all())


@cache
def _trigger(draft: Draft, with_own_input: bool) -> ReturningInsert[Any]:
    this_one = manifest.c.external_id == bindparam("external_id", type_=Text)
    chosen = and_(this_one, manifest.c.removed_at.is_(None))
    given: ColumnElement[str] = bindparam("input", type_=Text)
    return _queueing(draft, chosen, manifest.c.input if with_own_input else given)


def _queueing(
    draft: Draft, chosen: ColumnElement[bool], input: ColumnElement[str]
) -> ReturningInsert[Any]:
    entries: Select[Any] = select(
        manifest.c.id,
        manifest.c.group_id,
        manifest.c.workflow,
        manifest.c.input_type,
        input,
        word(Source.TRIGGER),
        manifest.c.priority,
        draft.now,
        bindparam("scheduled_at", type_=Instant),
        parents_seen(draft, manifest.c.id),
        bindparam("delayed", type_=Boolean),
        bindparam("max_attempts", type_=Integer),
    ).where(chosen)
    queued = insert(work_queue).from_select(COLUMNS, entries)
    return queued.returning(work_queue.c.id, *draft.told())


def rerun(
    tx: Transaction, execution_id: int, max_attempts: int = 1, input: str | None = None
) -> int | None:
    """Queue what an execution ran once more, with its input or another one; returns the entry, if
    there is one."""
    of_nobody = executions.c.manifest_id.is_(None)
    again: Select[Any] = (
        select(
            executions.c.manifest_id,
            executions.c.group_id,
            executions.c.workflow,
            executions.c.input_type,
            executions.c.input if input is None else literal(input),
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


def workflow_that_ran(tx: Transaction, execution_id: int) -> str | None:
    """The workflow of an execution, if there is one of that id."""
    statement = select(executions.c.workflow).where(executions.c.id == execution_id)
    return tx.connection.execute(statement).scalar_one_or_none()


def set_enabled(
    tx: Transaction, external_id: str, enabled: bool, expected: str | None = None
) -> bool:
    """Switch a manifest on or off; switched on, it and its children are looked at again.

    Returns whether there is one of that id; raises if its version is not the one *expected*.
    """
    named = manifest.c.external_id == external_id
    chosen = One(
        manifest, and_(named, manifest.c.removed_at.is_(None)), f"manifest {external_id!r}"
    )
    key = change(tx, chosen, {"enabled": enabled}, expected)
    if key is not None:
        leave_wakes(tx, [(key, Scope.SELF), (key, Scope.CHILDREN)])
    return key is not None


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
